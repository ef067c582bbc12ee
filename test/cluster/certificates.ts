// Certificates for tests, made by openssl: CAs, and the certificates that they sign.

import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { Certificates } from '../../cluster/index.js'

const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']

const openssl = (...words: string[]): void => {
  execFileSync('openssl', words, { stdio: 'ignore' })
}

/** A CA, which signs certificates. */
export class Authority {
  private readonly folder: string
  private issued = 0

  constructor(t: Test) {
    this.folder = mkdtempSync(join(tmpdir(), 'ca-'))
    t.teardown(() => rmSync(this.folder, { recursive: true, force: true }))
    openssl('req', '-x509', ...curve, '-days', '2', '-subj', '/CN=ca', ...this.files('ca'))
  }

  get ca(): string {
    return this.read('ca.pem')
  }

  /** A certificate for a member, in a name that no host has; with `days` below zero it has expired. */
  member(days = 2): Certificates {
    const name = `member ${this.issued++}`
    const [request, signed] = [join(this.folder, `${name}.csr`), join(this.folder, `${name}.pem`)]
    openssl('req', '-new', ...curve, '-subj', `/CN=${name}`, '-keyout', this.key(name), '-out', request)
    const signer = ['-CA', join(this.folder, 'ca.pem'), '-CAkey', this.key('ca'), '-CAcreateserial']
    openssl('x509', '-req', '-in', request, ...signer, '-days', String(days), '-out', signed)
    return { cert: this.read(`${name}.pem`), key: this.read(`${name}.key`), ca: this.ca }
  }

  private files(name: string): string[] {
    return ['-keyout', this.key(name), '-out', join(this.folder, `${name}.pem`)]
  }

  private key(name: string): string {
    return join(this.folder, `${name}.key`)
  }

  private read(file: string): string {
    return readFileSync(join(this.folder, file), 'utf8')
  }
}
