#!/usr/bin/env bash
# Installs packages that only tests need, when they are missing: install-packages.sh FOLDER ...
#
# Each folder has a package.json and a lock file of its own, so that nothing of them gets near the broker's own packages: test/clients (some
# of these clients are AGPL) and test/nodes (other versions of Node.js, 190 MB each). No script of a package is run. What was installed is
# known by a copy of the lock file: npm touches its own marks also when it only writes a lock file. Tests run at the same time: one of them
# installs, the others wait.
set -euo pipefail

# Chained, because `set -e` has no effect in a function that stands before `||`.
install() {
  cd "$1" || return
  exec 9<package-lock.json || return
  if command -v flock >/dev/null 2>&1; then flock 9; fi
  cmp -s package-lock.json node_modules/.installed-lock.json ||
    { npm ci --ignore-scripts --no-audit --no-fund && cp package-lock.json node_modules/.installed-lock.json; }
}

failed=0
for folder in "$@"; do (install "$folder") || failed=1; done
exit "$failed"
