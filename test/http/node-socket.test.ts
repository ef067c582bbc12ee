// WebSocket of the node:http front: the contract.

import t from 'tap'
import { openNodeFront } from '../../src/http/node-front.js'
import { socketContract } from './socket-contract.js'

socketContract(t, openNodeFront)
