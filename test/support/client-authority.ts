// An authority that signs certificates of clients, made by openssl: with any subject, further names, and an end to the
// second.

import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Teardown, tempDir } from './broker-process.js'

export interface ClientPair {
  /** PEM; with the certificate of an authority in between behind it, if there is one. */
  readonly cert: string
  readonly key: string
}

interface Wanted {
  /** As `DNS:a,URI:b`. */
  readonly names?: string
  readonly endsMs?: number
}

const dayMs = 86_400_000

const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']

const openssl = (...words: string[]): void => {
  execFileSync('openssl', words, { stdio: 'ignore' })
}

export class ClientAuthority {
  /** PEM file of its own certificate. */
  readonly caFile: string
  private readonly folder: string
  private issued = 0

  constructor(
    private readonly t: Teardown,
    name = 'authority',
    private readonly above?: ClientAuthority,
  ) {
    this.folder = tempDir(t)
    this.caFile = this.path('ca.pem')
    const words = ['-subj', `/CN=${name}`, '-keyout', this.path('ca.key')]
    if (above) {
      openssl('req', '-new', ...curve, ...words, '-out', this.path('ca.csr'))
      above.sign(
        this.path('ca.csr'),
        this.caFile,
        'basicConstraints=critical,CA:TRUE\nsubjectKeyIdentifier=hash',
        Date.now() + dayMs,
      )
    } else openssl('req', '-x509', ...curve, '-days', '2', ...words, '-out', this.caFile)
    writeFileSync(this.path('index.txt'), '')
    writeFileSync(this.path('index.txt.attr'), 'unique_subject = no\n')
    writeFileSync(this.path('serial'), '1000\n')
  }

  get ca(): Buffer {
    return readFileSync(this.caFile)
  }

  /** An authority whose certificate this one has signed. */
  below(name: string): ClientAuthority {
    return new ClientAuthority(this.t, name, this)
  }

  /** `subject`: as openssl takes it, `/O=City/CN=gateway-9`. */
  issue(subject: string, { names, endsMs = Date.now() + dayMs }: Wanted = {}): ClientPair {
    const name = `client-${this.issued++}`
    const [request, signed, key] = [this.path(`${name}.csr`), this.path(`${name}.pem`), this.path(`${name}.key`)]
    openssl('req', '-new', ...curve, '-utf8', '-subj', subject, '-keyout', key, '-out', request)
    this.sign(request, signed, names === undefined ? '' : `subjectAltName=${names}`, endsMs)
    const behind = this.above ? readFileSync(this.caFile, 'utf8') : ''
    return { cert: readFileSync(signed, 'utf8') + behind, key: readFileSync(key, 'utf8') }
  }

  private sign(request: string, signed: string, extension: string, endsMs: number): void {
    const config = this.path('sign.cnf')
    const files = `database=${this.path('index.txt')}\nserial=${this.path('serial')}\nnew_certs_dir=${this.folder}`
    const own = `certificate=${this.caFile}\nprivate_key=${this.path('ca.key')}`
    const rules = 'default_md=sha256\npolicy=any\npreserve=yes\nx509_extensions=more'
    const any = ['organizationName', 'commonName'].map(field => `${field}=optional`).join('\n')
    writeFileSync(
      config,
      `[ca]\ndefault_ca=d\n[d]\n${files}\n${own}\n${rules}\n[any]\n${any}\n[more]\nauthorityKeyIdentifier=keyid\n${extension}\n`,
    )
    const ends = new Date(endsMs).toISOString().replace(/[-:T]|\.\d+/g, '')
    const times = ['-startdate', '20260101000000Z', '-enddate', ends]
    openssl('ca', '-batch', '-notext', '-config', config, ...times, '-in', request, '-out', signed)
  }

  private path(name: string): string {
    return join(this.folder, name)
  }
}
