#!/usr/bin/env bash
# Installs the clients the tests talk through into test/clients/node_modules, when they are missing.
#
# They have their own package.json and lock file, so that nothing of them (ngsijs and iotagent-node-lib are AGPL) gets near the broker's own
# packages. No script of a package is run. What was installed is known by a copy of the lock file: npm touches its own marks also
# when it only writes a lock file. Tests run at the same time: one of them installs, the others wait.
set -euo pipefail
cd "$(dirname "$0")"
exec 9<install.sh
if command -v flock >/dev/null 2>&1; then flock 9; fi
if cmp -s package-lock.json node_modules/.installed-lock.json; then exit 0; fi
npm ci --ignore-scripts --no-audit --no-fund
cp package-lock.json node_modules/.installed-lock.json
