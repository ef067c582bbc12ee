// An OpenID provider of others (oidc-provider, unmodified) that issues what Keycloak issues: access tokens as JWT, with
// the roles in `realm_access.roles` and the tenants of a user in `tenants`, at the paths of a realm of Keycloak.
//
//   client_credentials    a program, with its secret
//   password              a person, with a name and a password; a grant of Keycloak that oidc-provider leaves to us
//   refresh_token         the same person, later
//
// Its keys can be replaced while it runs, and it can go away and come back at its address.

import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, type JWK } from 'jose'
import type { JsonObject } from '../../src/domain/json.js'
import type { Teardown } from '../support/broker-process.js'
import { loadModule } from './workspace.js'

/** What the tokens of a person or a program have. */
export interface Subject {
  readonly secret: string
  readonly roles: readonly string[]
  readonly tenants?: readonly string[]
}

/** The part of oidc-provider that is used here. */
interface Library {
  readonly Provider: new (issuer: string, configuration: object) => ProviderOfLibrary
}

interface ProviderOfLibrary {
  callback(): (request: IncomingMessage, response: ServerResponse) => void
  registerGrantType(name: string, handler: (context: Context) => Promise<void>, parameters: readonly string[]): void
  readonly Grant: new (
    of: object,
  ) => { save(): Promise<string>; addResourceScope(resource: string, scope: string): void }
  readonly AccessToken: new (of: object) => Token
  readonly RefreshToken: new (of: object) => Token
  readonly ResourceServer: new (resource: string, of: object) => object
}

interface Token {
  resourceServer: object
  readonly expiration: number
  readonly accountId?: string
  readonly clientId?: string
  save(): Promise<string>
}

interface Context {
  body: object
  status: number
  readonly oidc: {
    readonly client: { readonly clientId: string }
    readonly params: Readonly<Record<string, string | undefined>>
    entity(kind: string, entity: object): void
  }
}

const realm = '/realms/city'
const paths = { token: `${realm}/protocol/openid-connect/token`, jwks: `${realm}/protocol/openid-connect/certs` }
const resource = 'urn:orrery'
/** The client of people: it has no secret. */
const peoplesClient = 'city-app'

export class OpenIdProvider {
  private server: Server | undefined
  private keys: readonly JWK[] = []
  private answer: ReturnType<ProviderOfLibrary['callback']> = () => {}
  private isExpired = false

  private constructor(
    private readonly library: Library,
    private readonly people: Readonly<Record<string, Subject>>,
    private readonly programs: Readonly<Record<string, Subject>>,
    private port: number,
  ) {}

  /** It listens until the test ends. `port` 0: a free one. */
  static async start(
    t: Teardown,
    people: Readonly<Record<string, Subject>>,
    programs: Readonly<Record<string, Subject>>,
    port = 0,
  ): Promise<OpenIdProvider> {
    const provider = new OpenIdProvider((await loadModule('oidc-provider')) as Library, people, programs, port)
    t.teardown(() => provider.goAway())
    await provider.comeBack()
    await provider.replaceKeys('beside')
    return provider
  }

  get address(): string {
    return `http://localhost:${this.port}`
  }

  get issuer(): string {
    return this.address + realm
  }

  get tokenUrl(): string {
    return this.address + paths.token
  }

  /** The members of its entry in an access file. */
  entry(others: JsonObject = {}): JsonObject {
    return {
      issuer: this.issuer,
      audience: 'orrery',
      jwks: this.address + paths.jwks,
      algorithms: ['RS256', 'ES256'],
      subject: 'preferred_username',
      ...others,
    }
  }

  /** Signs with new keys from now on. `beside`: it still publishes the old ones. */
  async replaceKeys(how: 'beside' | 'instead'): Promise<void> {
    const made = await Promise.all(
      ['RS256', 'ES256'].map(async algorithm => {
        const { privateKey } = await generateKeyPair(algorithm, { extractable: true })
        return { ...(await exportJWK(privateKey)), kid: randomUUID(), alg: algorithm, use: 'sig' }
      }),
    )
    this.keys = how === 'beside' ? [...made, ...this.keys] : made
    this.answer = this.providerWith(this.keys).callback()
  }

  /** Issues tokens that ended two minutes ago. */
  issueExpired(isExpired: boolean): void {
    this.isExpired = isExpired
  }

  /** A token of a program. `further`: parameters of the request. */
  async tokenOf(program: string, further: Readonly<Record<string, string>> = {}): Promise<string> {
    const { secret } = this.programs[program]!
    const form = { grant_type: 'client_credentials', client_id: program, client_secret: secret, ...further }
    return (await this.ask(form)).access_token
  }

  /** Tokens of a person. `program`: the one that uses them; by default the client of people. */
  tokensOf(
    person: string,
    program?: string,
  ): Promise<{ readonly access_token: string; readonly refresh_token: string }> {
    const { secret } = this.people[person]!
    const client = { client_id: program ?? peoplesClient }
    const shown = program === undefined ? client : { ...client, client_secret: this.programs[program]!.secret }
    return this.ask({ grant_type: 'password', ...shown, username: person, password: secret })
  }

  async goAway(): Promise<void> {
    const { server } = this
    this.server = undefined
    if (!server) return
    server.closeAllConnections()
    await new Promise<void>(resolve => server.close(() => resolve()))
  }

  async comeBack(): Promise<void> {
    const server = createServer((request, response) => this.answer(request, response))
    await new Promise<void>(resolve => server.listen(this.port, 'localhost', resolve))
    this.port = (server.address() as AddressInfo).port
    this.server = server
  }

  private async ask(
    form: Readonly<Record<string, string>>,
  ): Promise<{ readonly access_token: string; readonly refresh_token: string }> {
    const answer = await fetch(this.tokenUrl, { method: 'POST', body: new URLSearchParams(form) })
    const json = (await answer.json()) as { access_token: string; refresh_token: string }
    if (!answer.ok) throw new Error(`${answer.status} ${JSON.stringify(json)}`)
    return json
  }

  private providerWith(keys: readonly JWK[]): ProviderOfLibrary {
    const { people, programs } = this
    const withoutCode = { redirect_uris: [], response_types: [] }
    const serverOf = (name: string, client: string): object => ({
      scope: 'api',
      audience: name.replace('urn:', ''),
      accessTokenTTL: 300,
      accessTokenFormat: 'jwt',
      jwt: { sign: { alg: client.endsWith('-es') ? 'ES256' : 'RS256' } },
    })
    const claimsOf = ({ accountId, clientId }: Token): JsonObject => {
      const { roles, tenants } = (accountId === undefined ? programs[clientId!] : people[accountId])!
      const name = accountId ?? `service-account-${clientId}`
      return { preferred_username: name, realm_access: { roles }, ...(tenants && { tenants }) }
    }
    const provider = new this.library.Provider(this.issuer, {
      clients: [
        {
          client_id: peoplesClient,
          token_endpoint_auth_method: 'none',
          grant_types: ['password', 'refresh_token'],
          ...withoutCode,
        },
        ...Object.entries(programs).map(([client_id, { secret }]) => ({
          client_id,
          client_secret: secret,
          token_endpoint_auth_method: 'client_secret_post',
          grant_types: ['client_credentials', 'password', 'refresh_token'],
          ...withoutCode,
        })),
      ],
      jwks: { keys },
      routes: paths,
      scopes: ['offline_access', 'api'],
      cookies: { keys: ['of no use'] },
      ttl: { AccessToken: 300, ClientCredentials: 300, Grant: 3600, RefreshToken: 3600 },
      rotateRefreshToken: false,
      findAccount: (_context: Context, accountId: string) => ({ accountId, claims: () => ({ sub: accountId }) }),
      extraTokenClaims: (_context: Context, token: Token) => claimsOf(token),
      formats: {
        customizers: {
          jwt: (_context: Context, _token: Token, { payload }: { readonly payload: Record<string, unknown> }) => {
            if (this.isExpired) payload.exp = Number(payload.iat) - 120
          },
        },
      },
      features: {
        devInteractions: { enabled: false },
        clientCredentials: { enabled: true },
        resourceIndicators: {
          enabled: true,
          defaultResource: () => resource,
          useGrantedResource: () => true,
          getResourceServerInfo: (_context: Context, name: string, client: { readonly clientId: string }) =>
            serverOf(name, client.clientId),
        },
      },
    })
    provider.registerGrantType(
      'password',
      async context => {
        const { client, params } = context.oidc
        const { username: accountId = '', password } = params
        if (people[accountId]?.secret !== password) {
          context.status = 401
          context.body = { error: 'invalid_grant', error_description: 'Invalid user credentials' }
          return
        }
        const { clientId } = client
        const grant = new provider.Grant({ accountId, clientId })
        grant.addResourceScope(resource, 'api')
        const of = { accountId, client, grantId: await grant.save(), gty: 'password', scope: 'api' }
        const token = new provider.AccessToken(of)
        token.resourceServer = new provider.ResourceServer(resource, serverOf(resource, clientId))
        context.oidc.entity('AccessToken', token)
        const refreshing = new provider.RefreshToken({ ...of, resource })
        context.body = {
          access_token: await token.save(),
          refresh_token: await refreshing.save(),
          expires_in: token.expiration,
          token_type: 'Bearer',
        }
      },
      ['username', 'password'],
    )
    return provider
  }
}
