#!/usr/bin/env bash
# Installs the clients the tests talk through into test/clients/node_modules, when they are missing.
#
# They have their own package.json and lock file, so that nothing of them (ngsijs is AGPL) gets near the broker's own packages.
set -euo pipefail
cd "$(dirname "$0")"
if [ node_modules/.package-lock.json -nt package-lock.json ]; then exit 0; fi
npm ci --no-audit --no-fund
touch node_modules/.package-lock.json
