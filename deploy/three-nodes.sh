#!/usr/bin/env bash
# Starts a cluster of three nodes and an etcd on this machine, to try it: deploy/three-nodes.sh [FOLDER [PORT]]. Ctrl-C ends all of them.
#
# All data is in FOLDER, or in a temporary one that is removed at the end. Clients use three ports from PORT on (1031). The nodes use three ports 6000
# above, and etcd two ports 1358 above.
# The script compiles Orrery once if there is no build, waits until every node is ready, and prints commands to try. The logs are in FOLDER:
# etcd.log, node1.log and so on.
# On a slow machine, READY_WAIT_S gives the nodes more than 120 s to be ready. When they are not, FOLDER stays, with the logs.
# It needs `etcd` (Debian: etcd-server) and curl.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH=$PATH:/usr/sbin

readonly ready_wait_s=${READY_WAIT_S:-120}
readonly port=${2:-1031}
readonly node_port=$((port + 6000)) etcd_port=$((port + 1358)) peer_port=$((port + 1359))

for command in etcd curl; do
  command -v "$command" >/dev/null || { echo "three-nodes: $command is missing (Debian: etcd-server, curl)" >&2; exit 1; }
done
[ -d node_modules ] || { echo "three-nodes: run 'npm install' first" >&2; exit 1; }
if [ ! -f dist/program/main.js ]; then
  echo "three-nodes: compiles Orrery, once; this takes some 15 seconds"
  npm run --silent compile
fi

if [ $# -gt 0 ]; then folder=$1; mkdir -p "$folder"; else folder=$(mktemp -d); fi
nodes=()
engine=
keeps=${1:-}

# Reports why the cluster is not ready, with the last lines of each log, and ends all.
fail() {
  keeps=yes
  echo "three-nodes: $1. On a busy machine, try READY_WAIT_S=600. The last lines of the logs, which stay in $folder:" >&2
  tail -n 3 "$folder"/*.log >&2
  exit 1
}

end() {
  trap '' EXIT INT TERM
  # The nodes first: each gives its shards away, and needs the engine for that.
  for node in "${nodes[@]}"; do kill "$node" 2>/dev/null || true; done
  for node in "${nodes[@]}"; do wait "$node" 2>/dev/null || true; done
  [ -z "$engine" ] || kill "$engine" 2>/dev/null || true
  wait
  [ -n "$keeps" ] || rm -rf "$folder"
}
trap end EXIT
trap 'exit 0' INT TERM

echo "three-nodes: starts etcd and three nodes in $folder"
etcd --data-dir "$folder/etcd" --listen-client-urls "http://127.0.0.1:$etcd_port" --advertise-client-urls "http://127.0.0.1:$etcd_port" \
  --listen-peer-urls "http://127.0.0.1:$peer_port" --initial-advertise-peer-urls "http://127.0.0.1:$peer_port" \
  --initial-cluster "default=http://127.0.0.1:$peer_port" --log-level error >"$folder/etcd.log" 2>&1 &
engine=$!

for n in 1 2 3; do
  node dist/program/main.js -port "$((port + n - 1))" -dataDir "$folder/node$n" -nodeName "node$n" -clusterListen "127.0.0.1:$((node_port + n - 1))" \
    -clusterJoin "127.0.0.1:$node_port,127.0.0.1:$((node_port + 1)),127.0.0.1:$((node_port + 2))" -shardLog "etcd://127.0.0.1:$etcd_port" \
    >"$folder/node$n.log" 2>&1 &
  nodes+=($!)
done

echo "three-nodes: waits until all nodes are ready; that takes some 10 seconds, and more on a busy machine"
for n in 1 2 3; do
  until curl -sf -o "$folder/ready.txt" "localhost:$((port + n - 1))/health/ready"; do
    [ "$SECONDS" -lt "$ready_wait_s" ] || fail "node$n is not ready after $ready_wait_s s"
    kill -0 "${nodes[$((n - 1))]}" 2>/dev/null || fail "node$n has ended"
    sleep 0.2
  done
done
rm -f "$folder/ready.txt"

cat <<TEXT
three-nodes: all nodes are ready. In another terminal:
  curl localhost:$port/v2/entities -H 'Content-Type: application/json' -d '{"id":"lamp","type":"Lamp","on":{"value":true}}'
  curl localhost:$((port + 1))/v2/entities/lamp        # another node answers
  kill -9 ${nodes[0]}   # node1 is lost; the others take over within seconds
  curl localhost:$((port + 2))/v2/entities/lamp
  node dist/program/main.js cluster status http://localhost:$((port + 2))
Ctrl-C ends all of them.
TEXT
wait || true
