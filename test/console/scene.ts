// A broker and its console in a real browser.
//
// A journey fails when the page has an error, when its policy was violated, when it asks anything but its broker, and when
// axe finds something. What fails is kept as a picture below .tap/console.

import { mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import type { Test } from 'tap'
import { type BrokerOptions, type BrokerProcess, startBroker, type Teardown } from '../support/broker-process.js'
import type { TestBrowser } from '../support/browser.js'
import { builtConsole } from '../support/built-console.js'
import { HttpClient } from '../support/http-client.js'
import { root } from '../support/project.js'

const axe = readFileSync(createRequire(join(root, 'package.json')).resolve('axe-core/axe.min.js'), 'utf8')

/** The browser reports refused requests as errors, which are a part of many journeys. */
const isExpected = (error: string): boolean => error.startsWith('Failed to load resource')

/** A broker for the journeys of a file: each has a tenant of its own. */
export function startConsole(t: Teardown, options: BrokerOptions = {}): Promise<BrokerProcess> {
  builtConsole()
  const { args = [], ...more } = options
  return startBroker(t, { ...more, args: ['-multiservice', '-durability', 'os', ...args] })
}

type Headers = Readonly<Record<string, string>>
type EntityJson = Readonly<Record<string, unknown>>

export class ConsoleScene {
  /** The origins that the page may ask. */
  readonly origins: Set<string>
  private readonly client: HttpClient
  /** The URLs of other origins that it has asked. */
  private readonly foreign: string[] = []

  constructor(
    private readonly t: Test,
    readonly broker: BrokerProcess,
    readonly tenant: string,
    readonly page: Page,
    private readonly errors: readonly string[],
    /** The headers of the test's own requests, besides the tenant. */
    private readonly headers: Headers = {},
  ) {
    this.client = new HttpClient(broker.baseUrl)
    t.teardown(() => this.client.close())
    this.origins = new Set([broker.baseUrl])
    const onAsked = (url: string): void => {
      const { protocol, origin } = new URL(url.replace(/^ws/, 'http'))
      if (protocol.startsWith('http') && !this.origins.has(origin)) this.foreign.push(url)
    }
    page.on('request', request => onAsked(request.url()))
    page.on('websocket', socket => onAsked(socket.url()))
  }

  async send(method: string, path: string, body?: unknown, headers: Headers = {}) {
    const all = { 'Ctx-Service': this.tenant, ...this.headers, ...headers }
    const answer = await this.client.send(method, path, body, all)
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`)
    return answer
  }

  async create(entities: readonly EntityJson[], headers: Headers = {}): Promise<void> {
    for (let at = 0; at < entities.length; at += 1000)
      await this.send(
        'POST',
        '/v2/op/update',
        { actionType: 'append', entities: entities.slice(at, at + 1000) },
        headers,
      )
  }

  /** Opens a view by its address behind `#`. */
  async open(address: string, tenant = this.tenant): Promise<Page> {
    const more = tenant === '' ? '' : `${address.includes('?') ? '&' : '?'}tenant=${tenant}`
    await this.page.goto(`${this.broker.baseUrl}/console/#/${address}${more}`)
    return this.page
  }

  /** Opens a view and waits until it is live, so that no later change is missed. */
  async openLive(address: string): Promise<Page> {
    const page = await this.open(address)
    await page.getByText('live', { exact: true }).waitFor()
    return page
  }

  /** No violation of WCAG 2.1 AA, light and dark. */
  async isAccessible(name: string): Promise<void> {
    for (const colorScheme of ['light', 'dark'] as const) {
      await this.page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      await this.page.evaluate(axe)
      const found = await this.page.evaluate<string[]>(
        `axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'] })
          .then(({ violations }) => violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ': ' + html.slice(0, 200))))`,
      )
      this.t.strictSame(found, [], `${name}, ${colorScheme}`)
    }
  }

  /** Whether the page has done what a page must not. */
  isClean(): void {
    this.t.strictSame(
      this.errors.filter(error => !isExpected(error)),
      [],
      'no error, and nothing that the policy forbids',
    )
    this.t.strictSame(this.foreign, [], 'nothing comes from elsewhere')
  }

  async keepPicture(name: string): Promise<void> {
    const folder = join(root, '.tap/console')
    mkdirSync(folder, { recursive: true })
    await this.page.screenshot({ path: join(folder, `${name.replace(/\W+/g, '-')}.png`) })
  }
}

export type Journey = (t: Test, scene: ConsoleScene) => Promise<void>

/** The function that declares a journey, with the entities that are there at its beginning. */
export function journeysIn(t: Test, browser: TestBrowser, broker: BrokerProcess) {
  let tenants = 0
  return (name: string, entities: readonly EntityJson[], run: Journey) =>
    t.test(name, async t => {
      const { page, errors } = await browser.open()
      t.teardown(() => page.close())
      const scene = new ConsoleScene(t, broker, `journey${++tenants}`, page, errors)
      await scene.create(entities)
      await carryOut(t, name, scene, run)
    })
}

export async function carryOut(t: Test, name: string, scene: ConsoleScene, run: Journey): Promise<void> {
  try {
    await run(t, scene)
    scene.isClean()
  } catch (error) {
    await scene.keepPicture(name)
    throw error
  }
  if (!t.passing()) await scene.keepPicture(name)
}

/** Waits until a question has the answer; fails with the last one. */
export async function becomes<T>(t: Test, ask: () => Promise<T>, wanted: T, name: string): Promise<void> {
  const lateMs = performance.now() + 15_000
  let answer = await ask()
  while (JSON.stringify(answer) !== JSON.stringify(wanted) && performance.now() < lateMs) {
    await new Promise(resolve => setTimeout(resolve, 20))
    answer = await ask()
  }
  t.strictSame(answer, wanted, name)
}

/** The cells of the rows that the table of entities shows, each row as a text. A dialog may be over them. */
export const rowsOf = (page: Page): Promise<string[]> =>
  page
    .getByRole('grid', { name: 'Entities', includeHidden: true })
    .getByRole('row', { includeHidden: true })
    .evaluateAll(rows => rows.slice(1).map(row => [...row.children].map(cell => cell.textContent).join(' | ')))
