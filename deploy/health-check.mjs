// What a container's health check runs: exit status 0 when the broker of this container lives.
//
// It reads the same variables as the broker. The port for liveness (CTX_LIVE_PORT) always speaks plain HTTP and answers while the broker is busy; the ordinary
// port speaks TLS where CTX_HTTPS says so. The certificate is not checked there, since it names the broker and not 127.0.0.1.

import { request as requestPlain } from 'node:http'
import { request as requestTls } from 'node:https'

const { CTX_LIVE_PORT, CTX_PORT, CTX_HTTPS: https = '' } = process.env
// Kubernetes sets CTX_PORT=tcp://... for a service of the name ctx, which the broker ignores as well.
const portOf = text => (/^[0-9]+$/.test(text ?? '') ? text : undefined)
const livePort = portOf(CTX_LIVE_PORT)
const port = portOf(CTX_PORT) ?? '1026'
const isTls = livePort === undefined && https.toLowerCase() === 'true'
const options = {
  host: '127.0.0.1',
  port: livePort ?? port,
  path: '/health/live',
  timeout: 5000,
  rejectUnauthorized: false,
}

const end = ok => process.exit(ok ? 0 : 1)
const asked = (isTls ? requestTls : requestPlain)(options, response => end(response.statusCode === 200))
asked.on('timeout', () => end(false))
asked.on('error', () => end(false))
asked.end()
