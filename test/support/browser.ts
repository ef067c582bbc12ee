// A real browser for tests: Debian's `chromium-headless-shell`, driven by playwright-core, which brings none itself.
//
// A test starts one browser and opens pages in it; each page has cookies and storage of its own, and keeps the errors
// that it shows. The browser ends with the test. Playwright ends it also when the process ends.

import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { type Browser, chromium, type Page } from 'playwright-core'
import type { Teardown } from './broker-process.js'
import { root } from './project.js'

/** Programs that do, the one that is installed when none is there first. */
const programs = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome']

/** The browser reaches this machine and nothing else, so a page that needs more fails. */
const reachable = '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost'

/** How long a browser may take to start, and a page to do what a test asks of it. */
const waitMsMax = 30_000

/** The reason to skip tests with a browser; false: one is there, or could be installed. */
export function noBrowser(): string | false {
  if (executable() !== undefined) return false
  try {
    execFileSync(join(root, 'test/support/need-debian.sh'), [programs[0] as string], { stdio: 'ignore' })
    return false
  } catch {
    return `there is no browser, and none could be installed (test/support/need-debian.sh ${programs[0]} says why)`
  }
}

/** The path of the browser; undefined: there is none. */
function executable(): string | undefined {
  try {
    const command = `for name in ${programs.join(' ')}; do command -v "$name" && exit; done; exit 1`
    return execFileSync('sh', ['-c', command], { encoding: 'utf8' }).trim()
  } catch {
    return undefined
  }
}

/** A page, and the errors that it has shown: exceptions that nothing caught, and errors on its console. */
export interface OpenPage {
  readonly page: Page
  readonly errors: string[]
}

export class TestBrowser {
  private constructor(private readonly browser: Browser) {}

  static async start(t: Teardown): Promise<TestBrowser> {
    const executablePath = executable()
    if (executablePath === undefined) throw new Error('there is no browser: skip the test with noBrowser()')
    const browser = await chromium.launch({
      executablePath,
      timeout: waitMsMax,
      args: [reachable],
      // As root the browser refuses to start with its sandbox.
      chromiumSandbox: process.getuid?.() !== 0,
    })
    t.teardown(() => browser.close())
    return new TestBrowser(browser)
  }

  /** Opens an empty page; `prepare` may set up what has to be there before the page of a test is loaded. */
  async open(prepare?: (page: Page) => Promise<unknown>): Promise<OpenPage> {
    const page = await this.browser.newPage()
    page.setDefaultTimeout(waitMsMax)
    const errors: string[] = []
    page.on('pageerror', error => errors.push(error.message))
    page.on('console', message => {
      if (message.type() === 'error') errors.push(message.text())
    })
    await prepare?.(page)
    return { page, errors }
  }
}
