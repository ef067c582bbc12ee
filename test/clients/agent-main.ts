// An IoT agent, as a program: lamps behind iotagent-node-lib, unmodified, with its registry in memory.
//
// Arguments: the port of its north side, the URL of the context broker, further settings as JSON. The program that
// starts it receives the calls of the library, and sends orders for the lamps, over the channel of a child process. This
// agent has no other south side.
//
// Not here: the start of the agent and the messages to it (iotagent).

import assert from 'node:assert/strict'
import { promisify } from 'node:util'
import type { AgentMessage, Attribute, Order } from './iotagent.js'
import { load } from './workspace.js'

type Callback = (error?: unknown, answer?: unknown) => void
type Handler = (
  id: string,
  type: string,
  service: string,
  subservice: string,
  attributes: readonly never[],
  callback: Callback,
) => void

interface Device {
  readonly id: string
  readonly name: string
  readonly type: string
  readonly apikey: string
  readonly service: string
  readonly subservice: string
}

/** The part of the library that is used here. */
interface Library {
  activate(config: object, callback: Callback): void
  update(name: string, type: string, apikey: string, attributes: object, device: Device, callback: Callback): void
  query(name: string, type: string, apikey: string, names: object, device: Device, callback: Callback): void
  getDevice(id: string, apikey: string, service: string, subservice: string, callback: Callback): void
  getConfiguration(resource: string, apikey: string, callback: Callback): void
  mergeDeviceWithConfiguration(
    fields: object,
    defaults: object,
    device: Device,
    group: object,
    callback: Callback,
  ): void
  setCommandResult(...of: [string, string, string, string, string, string, Device, Callback]): void
  executeUpdateSideEffects(...of: [Device, string, string, string, string, readonly Attribute[], Callback]): void
  setCommandHandler(handler: Handler): void
  setDataUpdateHandler(handler: Handler): void
  setDataQueryHandler(handler: Handler): void
  setNotificationHandler(handler: (device: Device, attributes: readonly Attribute[], callback: Callback) => void): void
}

/** The fields that devices inherit from their group. */
const merged = ['lazy', 'active', 'staticAttributes', 'commands']
const [port, brokerUrl, settings = '{}'] = process.argv.slice(2)
const library = load('iotagent-node-lib') as Library
const send = (message: AgentMessage): void => void process.send?.(message)

library.setDataQueryHandler((id, type, service, subservice, names: readonly string[], callback) => {
  send({ kind: 'query', id, type, service, subservice, names })
  const power = { type: 'Number', value: 17 }
  callback(null, names.includes('power') ? { id, type, power } : { id, type })
})
library.setDataUpdateHandler((id, type, service, subservice, attributes: readonly Attribute[], callback) => {
  send({ kind: 'update', id, type, service, subservice, attributes })
  callback(null)
})
library.setCommandHandler((id, type, service, subservice, attributes: readonly Attribute[], callback) => {
  // The library calls this handler for every update, also for those without a command.
  if (attributes.length > 0) send({ kind: 'command', id, type, service, subservice, attributes })
  callback(null)
})
library.setNotificationHandler((device, attributes, callback) => {
  const { name: id, type, service, subservice } = device
  library.executeUpdateSideEffects(device, id, type, service, subservice, attributes, error => {
    send({ kind: 'notification', id, type, service, subservice, attributes })
    callback(error)
  })
})

process.on('disconnect', () => process.exit())
process.on('message', (order: Order) => {
  carryOut(order).then(
    answer => send({ kind: 'done', number: order.number, answer }),
    (error: unknown) => send({ kind: 'done', number: order.number, error: JSON.stringify(error) ?? String(error) }),
  )
})

async function carryOut(order: Order): Promise<unknown> {
  if (order.kind === 'nothing') return undefined
  const { apikey, service, subservice } = order.group
  const alone = (await promisify(library.getDevice)(order.device, apikey, service, subservice)) as Device
  const group = (await promisify(library.getConfiguration)('/iot', apikey)) as object
  const device = (await promisify(library.mergeDeviceWithConfiguration)(merged, [], alone, group)) as Device
  const { name, type } = device
  switch (order.kind) {
    case 'measure':
      return promisify(library.update)(name, type, apikey, order.attributes, device)
    case 'read':
      return promisify(library.query)(name, type, apikey, order.names, device)
    case 'report':
      return promisify(library.setCommandResult)(name, '/iot', apikey, order.command, order.result, 'OK', device)
  }
}

assert(port !== undefined && brokerUrl !== undefined)
await promisify(library.activate)({
  logLevel: 'FATAL',
  dieOnUnexpectedError: true,
  contextBroker: { url: brokerUrl, ngsiVersion: 'v2' },
  server: { port: Number(port), host: '127.0.0.1' },
  providerUrl: `http://127.0.0.1:${port}`,
  deviceRegistry: { type: 'memory' },
  types: {},
  service: 'unused',
  subservice: '/unused',
  defaultType: 'Thing',
  ...(JSON.parse(settings) as object),
})
send({ kind: 'ready' })
