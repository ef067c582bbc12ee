// WebSocket of the uWebSockets.js front: the contract, also on tracked connections.

import t from 'tap'
import { openUwsFront } from '../../src/http/uws-front.js'
import type { Open } from './front-contract.js'
import { socketContract } from './socket-contract.js'

const differences = { cutsWithoutClosing: true, refusesEarlyFrames: true }

socketContract(t, openUwsFront, differences)

const openTracked: Open = (options, handler) => openUwsFront({ ...options, connectionsPerAddressMax: 10_000 }, handler)

t.test('on tracked connections it is the same', async t => socketContract(t, openTracked, differences))
