#!/usr/bin/env bash
# Three nodes and an etcd on this machine, for trying things out: deploy/three-nodes.sh, and Ctrl-C to end them all.
#
# Clients may use the ports 1021 to 1023. Everything lies in one directory, the first argument or a temporary one that goes with the nodes.
# Needs `etcd` (Debian: etcd-server) and a build (npm run build).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH=$PATH:/usr/sbin

command -v etcd >/dev/null || { echo "there is no etcd: apt-get install etcd-server" >&2; exit 1; }
[ -f dist/src/main.js ] || { echo "there is no build: npm run build" >&2; exit 1; }

if [ $# -gt 0 ]; then folder=$1; mkdir -p "$folder"; else folder=$(mktemp -d); fi
nodes=()
engine=

end() {
  trap '' EXIT INT TERM
  # The nodes first: each gives its shards away, and needs the engine for that.
  for node in "${nodes[@]}"; do kill "$node" 2>/dev/null || true; done
  for node in "${nodes[@]}"; do wait "$node" 2>/dev/null || true; done
  [ -z "$engine" ] || kill "$engine" 2>/dev/null || true
  wait
  [ -n "${1:-}" ] || rm -rf "$folder"
}
trap "end ${1:-}" EXIT
trap 'exit 0' INT TERM

etcd --data-dir "$folder/etcd" --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
  --listen-peer-urls http://127.0.0.1:2380 --log-level error >"$folder/etcd.log" 2>&1 &
engine=$!

for n in 1 2 3; do
  node dist/src/main.js -port "102$n" -dataDir "$folder/node$n" -nodeName "node$n" -clusterListen "127.0.0.1:702$n" \
    -clusterJoin 127.0.0.1:7021,127.0.0.1:7022,127.0.0.1:7023 -shardLog etcd://127.0.0.1:2379 &
  nodes+=($!)
done
wait
