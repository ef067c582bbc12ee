#!/usr/bin/env bash
# Starts a cluster of three nodes and an etcd on this machine, to try it: deploy/three-nodes.sh. Ctrl-C ends all of them.
#
# Clients use the ports 1021 to 1023. All data is in one directory: the first argument, or a temporary one that is removed at the end.
# The script compiles Orrery once if there is no build, waits until every node is ready, and says what to try.
# It needs `etcd` (Debian: etcd-server) and curl.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH=$PATH:/usr/sbin

readonly ready_wait_s=60

for command in etcd curl; do
  command -v "$command" >/dev/null || { echo "three-nodes: $command is missing (Debian: etcd-server, curl)" >&2; exit 1; }
done
[ -d node_modules ] || { echo "three-nodes: run 'npm install' first" >&2; exit 1; }
if [ ! -f dist/src/main.js ]; then
  echo "three-nodes: compiles Orrery, once; this takes some 15 seconds"
  npx tsc -b src
fi

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

echo "three-nodes: starts etcd and three nodes in $folder"
etcd --data-dir "$folder/etcd" --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
  --listen-peer-urls http://127.0.0.1:2380 --log-level error >"$folder/etcd.log" 2>&1 &
engine=$!

for n in 1 2 3; do
  node dist/src/main.js -port "102$n" -dataDir "$folder/node$n" -nodeName "node$n" -clusterListen "127.0.0.1:702$n" \
    -clusterJoin 127.0.0.1:7021,127.0.0.1:7022,127.0.0.1:7023 -shardLog etcd://127.0.0.1:2379 &
  nodes+=($!)
done

for n in 1 2 3; do
  until curl -sf -o "$folder/ready.txt" "localhost:102$n/health/ready"; do
    [ "$SECONDS" -lt "$ready_wait_s" ] || { echo "three-nodes: node$n is not ready after $ready_wait_s s" >&2; exit 1; }
    kill -0 "${nodes[$((n - 1))]}" 2>/dev/null || { echo "three-nodes: node$n has ended" >&2; exit 1; }
    sleep 0.2
  done
done
rm -f "$folder/ready.txt"

cat <<TEXT
three-nodes: all nodes are ready. In another terminal:
  curl localhost:1021/v2/entities -H 'Content-Type: application/json' -d '{"id":"lamp","type":"Lamp","on":{"value":true}}'
  curl localhost:1022/v2/entities/lamp        # another node answers
  kill -9 ${nodes[0]}                                # node1 is lost; the others take over within seconds
  curl localhost:1023/v2/entities/lamp
  node dist/src/main.js cluster status http://localhost:1023
Ctrl-C ends all of them.
TEXT
wait
