#!/usr/bin/env bash
# The long campaigns: what CI does in small, at length, and what it has no time for. Ends at the first that fails. Needs a build (npm run soak).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tests() { node dist/test/support/run-tests.js "${@/#/dist/test/}"; }
conformance() { node dist/test/conformance/run.js "$@"; }

MOVE_ROUNDS=100 MOVE_KILLS=30 tests move/directories.test.js journeys/moving.test.js
# On each version of Node.js that is supported. The receiver is away for longer than five tries of a delivery take.
for node in "$(command -v node)" test/nodes/node_modules/node{22,24}/bin/node; do
  [ -x "$node" ] || { echo "skipped: a day of an operator on $node, which is not installed"; continue; }
  ORRERY_DAY_NODE=$(realpath "$node") ORRERY_DAY_INSTALL=npm ORRERY_DAY_ENTITIES=20000 ORRERY_DAY_AWAY_SECONDS=360 \
    node dist/test/journeys/operators-day.test.js
done
CRASH_CYCLES=300 tests journeys/crash.test.js
CLUSTER_INIT=all tests journeys/cluster-init.test.js
UPGRADE_REST_MS=10 tests journeys/upgrade.test.js
CLUSTER_ROUNDS=50 tests journeys/cluster-oracle.test.js
ACCESS_CHANGES=20 tests journeys/access-changes.test.js
tests journeys/disk-failure.test.js
STALLED_STREAMS=1000 tests journeys/stalled-streams.test.js
ORRERY_WATCH_MATCHES=50000 tests domain/streams/watch-matches.test.js
ORRERY_QUERIES=50000 tests journeys/queries.test.js
DIFFERENTIAL_REQUESTS=20000 tests journeys/differential.test.js
# Not by tests(): they take longer than it lets a file take.
NOTIFICATION_CYCLES=300 node dist/test/journeys/notification-oracle.test.js
LIVES=300 node dist/test/journeys/live-oracle.test.js
ACCESS_REQUESTS=1000000 node dist/test/journeys/access-oracle.test.js
ACCESS_REQUESTS=500 tests access-reference/open-broker.test.js
HOSTILE_REQUESTS=1000000 node dist/test/hostile/campaign.test.js
HOSTILE_SHOTS=100000 node dist/test/hostile/sockets.test.js
HOLD=all node dist/test/hostile/one-node.test.js
HOLD=all node dist/test/hostile/two-workers.test.js
CUT_PLACES=all node dist/test/http/cut-matrix.test.js
FUZZ_INPUTS=1000000 FUZZ_CALL_MS_MAX=50 node dist/test/domain/fuzz.test.js

ORRERY_MAIN=dist/test/support/loopback-main.js conformance
ORRERY_MAIN=dist/test/support/level-main.js conformance
CTX_HTTP_SERVER=node conformance --skip '0999*fake_field*'
CTX_WORKERS=2 conformance
# With access control that allows everything to clients that show nothing. Subscriptions and registrations show an `owner` then, which their cases do
# not expect, and ten cases of subscriptions send an X-Auth-Token that is no proof: a 401 also there.
CTX_ACCESS=test/conformance/open-access.json conformance --group entities,operations
conformance --cluster

SIMULATIONS=1000 node dist/test/cluster/simulation.test.js
SIMULATIONS=200 node dist/test/cluster/gossip/gossip.test.js
REPLICATIONS=2000 node dist/test/cluster/replication-simulation.test.js
