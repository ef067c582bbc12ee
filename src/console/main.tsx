// Begins the console in its page.

import { render } from 'preact'
import { App } from './app.js'
import { ConsoleClient } from './interface/console-client.js'
import { AddressBar } from './state/address.js'
import { MetricHistory } from './state/metric-history.js'
import { ProofHolder } from './state/proof.js'
import { RequestDraft } from './state/request-draft.js'

const holder = new ProofHolder()
// This file is /console/HASH/main.js, perhaps below a path of a proxy.
const client = new ConsoleClient(new URL('../../', import.meta.url), holder)
const bar = new AddressBar()
const metrics = new MetricHistory(client)
const draft = new RequestDraft()
const place = document.getElementById('console')
await client.begin()
if (place) render(<App client={client} bar={bar} metrics={metrics} draft={draft} holder={holder} />, place)
