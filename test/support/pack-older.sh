#!/usr/bin/env bash
# Packs the program of a commit as the older build of the upgrade journey: test/fixtures/older-build.tgz.
#
#   test/support/pack-older.sh COMMIT
#
# Builds the commit in a folder of its own, with the packages of this checkout, and keeps the JavaScript that runs, the protocol files, package.json
# and a file COMMIT. The same commit gives the same bytes. test/fixtures/README.md says when to pack another one.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
commit=$(git -C "$root" rev-parse --verify "$1^{commit}")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

git -C "$root" archive "$commit" | tar -x -C "$folder"
ln -s "$root/node_modules" "$folder/node_modules"
cd "$folder"
node_modules/.bin/tsc -b src
echo "$commit" >COMMIT
{
  printf '%s\n' COMMIT package.json proto
  find dist/src dist/cluster -name '*.js'
} | LC_ALL=C sort | tar -c --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX -T - | gzip -9n >"$root/test/fixtures/older-build.tgz"
ls -l "$root/test/fixtures/older-build.tgz"
