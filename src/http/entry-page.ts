// `GET /`: describes this server, as JSON for clients and as a small page for browsers (docs/interface/browsers.md).
//
// Both are built once, from the version alone, and contain nothing about tenants or data. The page has no script and
// loads nothing. Its links are relative, so that they also work behind a proxy that serves the broker below a path.
//
// Not here: the choice between the two (request.ts), the answer (service.ts).

import { createHash } from 'node:crypto'

const name = 'Orrery'
const description = 'an NGSIv2 context broker'

/** Paths with more information, each with a description. */
const links: Readonly<Record<string, readonly [path: string, about: string]>> = {
  interface: ['/v2', 'the NGSIv2 interface'],
  entities: ['/v2/entities', 'entities'],
  types: ['/v2/types', 'their types'],
  subscriptions: ['/v2/subscriptions', 'subscriptions'],
  registrations: ['/v2/registrations', 'registrations of context providers'],
  version: ['/version', 'version and libraries'],
  health: ['/health/ready', 'whether this node takes requests'],
  metrics: ['/metrics', 'metrics for Prometheus'],
}

const specification = 'https://fiware.github.io/specifications/ngsiv2/stable/'

const style =
  'body{font:16px/1.5 system-ui,sans-serif;max-width:40em;margin:3em auto;padding:0 1em;color-scheme:light dark}' +
  'dt{font-family:ui-monospace,monospace}dd{margin:0 0 .5em 1em}'

export interface EntryPage {
  readonly json: string
  readonly html: string
}

/** Headers of the answer: they allow the page its own style sheet and nothing else. */
export const entryPageHeaders: readonly string[] = [
  'Content-Security-Policy',
  `default-src 'none'; style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  'X-Content-Type-Options',
  'nosniff',
  'Referrer-Policy',
  'no-referrer',
]

export function entryPageOf(version: string): EntryPage {
  const paths = Object.fromEntries(Object.entries(links).map(([key, [path]]) => [key, path]))
  return {
    json: JSON.stringify({ name, version, description, links: { ...paths, specification } }),
    html: pageOf(version),
  }
}

function pageOf(version: string): string {
  const items = Object.values(links).map(
    ([path, about]) => `<dt><a href="${path.slice(1)}">${path}</a></dt><dd>${about}</dd>`,
  )
  return [
    '<!DOCTYPE html>',
    '<html lang="en">',
    `<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${name}</title><style>${style}</style></head>`,
    `<body><h1>${name} ${version}</h1>`,
    `<p>This is ${description}. It speaks <a href="${specification}">NGSIv2</a> here:</p>`,
    `<dl>${items.join('')}</dl>`,
    '</body></html>',
    '',
  ].join('\n')
}
