// The files of the console, for browsers (docs/operations/console.md).
//
// Only known names are served: the files were read at the start into a map, and no request leads to the disk. They
// contain nothing of tenants or data, so they need no proof. All files but the page have the hash of their build in
// their path: a cache may keep them for ever. The page itself is asked for each time, with its tag.
//
// Not here: reading the files (process/compose/console.ts), the choice of a coding (reply.ts).

import { refusals } from '../domain/refusal.js'
import type { Reply } from './reply.js'
import type { Request } from './request.js'
import type { ServedFile } from './served-file.js'

/** The files of a built console, by their path below `/console/`; the page is `index.html`. */
export type ConsoleFiles = ReadonlyMap<string, ServedFile>

/** Everything comes from the broker itself. There are no scripts or styles in the page, and no frame may show it. */
const policy =
  "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const typeOf: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  json: 'application/json',
  svg: 'image/svg+xml',
  txt: 'text/plain; charset=utf-8',
}

export const pageName = 'index.html'

/** The headers of a file; undefined: files of this kind are not served. */
export function consoleHeaders(path: string): readonly string[] | undefined {
  const type = typeOf[path.slice(path.lastIndexOf('.') + 1)]
  if (type === undefined) return undefined
  return [
    'Content-Type',
    type,
    'Cache-Control',
    path === pageName ? 'no-cache' : 'public, max-age=31536000, immutable',
    'Content-Security-Policy',
    policy,
    'X-Content-Type-Options',
    'nosniff',
    'Referrer-Policy',
    'no-referrer',
  ]
}

export class ConsoleHandlers {
  /** `files`: undefined, the console was not built. */
  constructor(private readonly files: ConsoleFiles | undefined) {}

  /** `GET /console` leads to `/console/`, from which the links of the page are resolved. */
  page({ path }: Request, reply: Reply): void {
    if (path.endsWith('/')) this.serve(pageName, reply)
    else reply.redirect('console/')
  }

  file({ components: [, ...names] }: Request, reply: Reply): void {
    this.serve(names.join('/'), reply)
  }

  private serve(path: string, reply: Reply): void {
    if (!this.files) return reply.refuse(refusals.consoleMissing)
    const file = this.files.get(path)
    if (file) reply.file(file)
    else reply.refuse(refusals.consoleFile)
  }
}
