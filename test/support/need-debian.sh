#!/usr/bin/env bash
# Makes sure that commands are there which come from packages of Debian: need-debian.sh COMMAND[=PACKAGE] ...
#
# Installs what is missing with apt-get, as root or through sudo without a password. Where that is not possible it prints what to do
# and ends with 1; the tests that need the command then skip themselves and say so.
set -euo pipefail

look() {
  missing=()
  local word
  for word in "$@"; do
    command -v "${word%%=*}" >/dev/null 2>&1 || missing+=("${word#*=}")
  done
}

look "$@"
if [ "${#missing[@]}" -eq 0 ]; then exit 0; fi

if [ "$(uname)" = Darwin ]; then
  echo "missing: ${missing[*]}; try: brew install ${missing[*]} (strace is for Linux only)" >&2
  exit 1
fi
if ! command -v apt-get >/dev/null 2>&1; then
  echo "missing: ${missing[*]}; install them with the package manager of this system" >&2
  exit 1
fi
root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! sudo -n true 2>/dev/null; then
    echo "missing: ${missing[*]}; run: sudo apt-get install ${missing[*]}" >&2
    exit 1
  fi
  root=(sudo -n)
fi
export DEBIAN_FRONTEND=noninteractive
"${root[@]}" apt-get update -qq >&2
# A package may also want to start its service, which in a container can fail: what counts is whether the commands are there.
"${root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2 || true
look "$@"
if [ "${#missing[@]}" -ne 0 ]; then
  echo "could not be installed: ${missing[*]}" >&2
  exit 1
fi
