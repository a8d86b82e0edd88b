/** The settings of the addresses of the server: listeners, origins, load-balancing endpoints and HTTPS. */
import { MAX_INPUT_BYTES, MAX_RESULT_BYTES } from '../core/jobs/large-text.ts'
import {
  checkedText,
  flag,
  HOST_NAME,
  HTTP_ORIGIN,
  many,
  megabytes,
  optional,
  PAGE_ORIGIN,
  PATH,
  type Setting,
  setting,
  TEXT,
  type ValueKind,
  wholeNumber,
} from './setting.ts'

const MEGABYTE = 1024 * 1024

/** The settings of the listener for clients. */
export const LISTENER_SETTINGS = {
  port: setting('--port', '<number>', '8080', wholeNumber(0, 65_535), 'port to listen on; 0 picks a free one'),
  host: setting('--host', '<address>', '127.0.0.1', TEXT, 'address to listen on; use TLS for all but loopback'),
}

/** The settings of connections and bodies, and of the listener for management. */
export const CONNECTION_SETTINGS = {
  maxConnections: setting(
    '--max-connections',
    '<number>',
    '20000',
    wholeNumber(64, 1_000_000),
    'maximum connections at once; fewer when the limit of open files is low',
  ),
  /** Null for a number by the processors of the machine. */
  httpThreads: setting(
    '--http-threads',
    '<number|auto>',
    '1',
    threadCount(),
    'threads that read HTTP and pass requests to load-balancing endpoints; auto: processors minus 2, from 1 to 8',
  ),
  bodyBytes: setting(
    '--max-body-memory',
    '<megabytes>',
    '256',
    megabytes(32, 1_000_000),
    'maximum memory for request bodies of clients, and the same again for results of workers',
  ),
  resultBytes: setting(
    '--max-result-mb',
    '<megabytes>',
    String(MAX_RESULT_BYTES.default / MEGABYTE),
    megabytes(MAX_RESULT_BYTES.default / MEGABYTE, MAX_RESULT_BYTES.max / MEGABYTE),
    'largest result of a job; above 20 MB its parts are stored as they arrive',
  ),
  /** Null for the limits that run and runsync have by themselves. */
  inputBytes: optional(
    '--max-input-mb',
    '<megabytes>',
    megabytes(MAX_INPUT_BYTES.min / MEGABYTE, MAX_INPUT_BYTES.max / MEGABYTE),
    'largest body of /run and /runsync; above 20 MB its input is stored in parts as it arrives (default: 10 for /run, 20 for /runsync)',
  ),
  /** Null when management has no port of its own. */
  adminPort: optional(
    '--admin-port',
    '<number>',
    wholeNumber(0, 65_535),
    'port on which management (GraphQL, REST, /metrics, health) listens alone; 0 picks a free one (default: with all else)',
  ),
  adminHost: setting('--admin-host', '<address>', '127.0.0.1', TEXT, 'address of --admin-port'),
  addressConnections: share('--max-connections-per-address', 'from one address'),
  accountConnections: share('--max-connections-per-account', 'with requests of one account'),
  endpointConnections: share('--max-connections-per-endpoint', 'with requests for one load-balancing endpoint'),
  bodyDiskBytes: setting(
    '--max-body-disk',
    '<megabytes>',
    '4096',
    megabytes(32, 10_000_000),
    'maximum disk space for results of workers that do not fit into memory',
  ),
}

/** Null for half of all connections. */
function share(flag: string, whose: string): Setting<number | null> {
  const help = `maximum connections ${whose} (default: half of --max-connections)`
  return optional(flag, '<number>', wholeNumber(1, 1_000_000), help)
}

/** An origin as browsers send it, or `off`. */
const CONSOLE_ORIGIN: ValueKind<string> = {
  check: text =>
    text === 'off' || (HTTP_ORIGIN.check(text) === null && !text.includes('@'))
      ? null
      : 'must be off or an http or https origin without a path, such as https://console.example',
  parse: text => (text === 'off' ? text : new URL(text).origin),
}

/** The settings of the addresses that clients see. */
export const ORIGIN_SETTINGS = {
  /** Null for the address that the server listens on. */
  publicUrl: optional(
    '--public-url',
    '<url>',
    HTTP_ORIGIN,
    'address of REST and GraphQL in responses, when a proxy is in front',
  ),
  queueUrl: optional(
    '--queue-url',
    '<url>',
    HTTP_ORIGIN,
    'address of the job operations in responses (default: the public one)',
  ),
  /** `*` for all. */
  corsOrigins: many(
    '--cors-origin',
    '<origin>',
    PAGE_ORIGIN,
    'origin of web pages that may call the job operations from a browser, such as https://app.example, or * for all; may be repeated',
    ',',
  ),
  /** `off`, or null for a host below localhost. */
  consoleUrl: optional(
    '--console-url',
    '<url|off>',
    CONSOLE_ORIGIN,
    'address of the console in browsers, with a host of its own, or off (default: console.localhost with the port of management)',
  ),
}

/** The settings that have names by which clients call the server. */
interface ClientNames {
  readonly consoleUrl: string | null
  readonly publicUrl: string | null
  readonly queueUrl: string | null
  readonly lbDomain: string | null
  readonly host: string
  readonly adminHost: string
  readonly allowedHosts: readonly string[]
}

/**
 * The reason against the console at the address of the settings; null without one. Only pages of the console may be at
 * its host, on any port: code of endpoints there would be taken for it, and no client with a key would be answered.
 */
export function consoleClash(names: ClientNames): string | null {
  const { publicUrl, queueUrl, lbDomain, host, adminHost, allowedHosts } = names
  const consoleUrl = givenConsoleUrl(names)
  if (consoleUrl === null) return null
  const own = hostnameFromUrl(consoleUrl)
  const hint = 'give the console a host of its own, such as https://console.example'
  const flags: readonly (readonly [flag: string, host: string | null])[] = [
    ['--public-url', publicUrl === null ? null : hostnameFromUrl(publicUrl)],
    ['--queue-url', queueUrl === null ? null : hostnameFromUrl(queueUrl)],
    ['--lb-domain', lbDomain],
    ['--host', host],
    ['--admin-host', adminHost],
    ...allowedHosts.map(name => ['--allowed-host', name] as const),
  ]
  const taken = flags.find(([, other]) => other !== null && other.toLowerCase().replace(/\.$/, '') === own)
  if (taken !== undefined) return `--console-url has the host of ${taken[0]}, ${own}; ${hint}`
  const isAddress = /^\d+(?:\.\d+){3}$|^\[/.test(own) || own === 'localhost'
  return isAddress ? `--console-url has a host by which clients call this server, ${own}; ${hint}` : null
}

/** The origin of the console that the settings name; null without one, and if the console is off. */
export function givenConsoleUrl({ consoleUrl }: Pick<ClientNames, 'consoleUrl'>): string | null {
  return consoleUrl === 'off' ? null : consoleUrl
}

function hostnameFromUrl(url: string): string {
  return new URL(url).hostname.replace(/\.$/, '')
}

/** A number of threads, or `auto`, which is null. */
function threadCount(): ValueKind<number | null> {
  const number = wholeNumber(1, 64)
  const check = (text: string) => (text === 'auto' || number.check(text) === null ? null : MUST_BE_THREADS)
  return { check, parse: (text, absolute) => (text === 'auto' ? null : number.parse(text, absolute)) }
}

const MUST_BE_THREADS = 'must be auto or a whole number from 1 to 64'

/**
 * The settings of load-balancing endpoints. Addresses have colons, so commas separate several of them in a variable.
 */
export const GATEWAY_SETTINGS = {
  allowedHosts: many(
    '--allowed-host',
    '<name>',
    HOST_NAME,
    'name by which clients may call this server, besides its own and those of loopback; may be repeated',
    ',',
  ),
  lbFolders: many(
    '--lb',
    '<folder>',
    PATH,
    'run the server in this folder as a load-balancing endpoint; may be repeated',
  ),
  /** Null for paths below `/lb/`, and hosts below localhost. */
  lbDomain: optional(
    '--lb-domain',
    '<domain>',
    domainName(),
    'domain below which load-balancing endpoints are hosts, as <endpoint>.<domain> (default: paths below /lb/)',
  ),
  /** Ids and names of endpoints. */
  lbPublic: many(
    '--lb-public',
    '<endpoint>',
    TEXT,
    'id or name of a load-balancing endpoint that needs no key; may be repeated',
    ',',
  ),
  lbBodyBytes: setting(
    '--max-lb-body',
    '<megabytes>',
    '30',
    megabytes(1, 1_000_000),
    'largest body of a request for a load-balancing endpoint',
  ),
  trustedProxies: many(
    '--trusted-proxy',
    '<address>',
    checkedText(networkProblem),
    'address or network (10.0.0.0/8) of a proxy whose X-Forwarded headers are trusted; may be repeated',
    ',',
  ),
}

/** A domain in lower case. Endpoints are names before it, which an IP address cannot have. */
function domainName(): ValueKind<string> {
  return {
    check: text => (HOST_NAME.check(text) === null && !isIpv4(text) ? null : 'must be a domain such as lb.example'),
    parse: text => text.toLowerCase(),
  }
}

function networkProblem(text: string): string | null {
  const [address = '', length, ...rest] = text.split('/')
  const bits = isIpv4(address) ? 32 : isIpv6(address) ? 128 : -1
  const fits = length === undefined || (/^\d{1,3}$/.test(length) && Number(length) <= bits)
  return bits > 0 && fits && rest.length === 0 ? null : 'must be an IP address or a network such as 10.0.0.0/8'
}

function isIpv4(text: string): boolean {
  return /^\d{1,3}(\.\d{1,3}){3}$/.test(text) && text.split('.').every(part => Number(part) <= 255)
}

function isIpv6(text: string): boolean {
  return /^[0-9a-f:.]+$/i.test(text) && text.includes(':') && URL.canParse(`http://[${text}]/`)
}

/** Two years, which lists of browsers ask for. */
const MAX_HSTS_S = 63_072_000

/** The settings of HTTPS without a proxy in front. */
export const TLS_SETTINGS = {
  tls: {
    /** Null where the server speaks plain HTTP, or has a certificate of its own making. */
    certFile: optional(
      '--tls-cert',
      '<file>',
      PATH,
      'certificate in PEM, with its chain, to answer HTTPS; read again when it changes',
    ),
    keyFile: optional('--tls-key', '<file>', PATH, 'private key of --tls-cert in PEM, without a passphrase'),
    selfSigned: flag('--tls-self-signed', 'answer HTTPS with a certificate that this server makes for itself'),
    /** Null for no such listener. */
    redirectPort: optional(
      '--http-redirect-port',
      '<number>',
      wholeNumber(0, 65_535),
      'port that answers plain HTTP with the address in HTTPS; 0 picks a free one',
    ),
    hstsSeconds: setting(
      '--hsts',
      '<seconds>',
      '0',
      wholeNumber(0, MAX_HSTS_S),
      'seconds for which browsers use HTTPS alone for this host; 0 sends no such header',
    ),
  },
}

/** The source of the server's certificate, and further settings of HTTPS. */
export interface TlsSettings {
  readonly certFile: string | null
  readonly keyFile: string | null
  readonly selfSigned: boolean
  readonly redirectPort: number | null
  readonly hstsSeconds: number
}

/** True when the listeners for clients and for management speak HTTPS. */
export function hasTls({ certFile, selfSigned }: TlsSettings): boolean {
  return certFile !== null || selfSigned
}

/** The address at which pods call the server. */
interface CallsOfPods {
  readonly where: string
  readonly workerUrl: string | null
  readonly workerPort: number
}

const POD_PORT =
  '--kubernetes-worker-port 0 lets pods call the port of clients, which speaks HTTPS then; give them a port of their own'

function calledInPlain({ where, workerUrl, workerPort }: CallsOfPods): boolean {
  return where !== 'off' && workerPort === 0 && workerUrl?.startsWith('https:') !== true
}

/** The conflict between settings of HTTPS; null without one. */
export function tlsClash(tls: TlsSettings, pods: CallsOfPods): string | null {
  const { certFile, keyFile, selfSigned, redirectPort, hstsSeconds } = tls
  if ((certFile === null) !== (keyFile === null)) {
    const [given, missing] = certFile === null ? ['--tls-key', '--tls-cert'] : ['--tls-cert', '--tls-key']
    return `${given} needs ${missing}: --tls-cert and --tls-key belong together`
  }
  if (selfSigned && certFile !== null)
    return '--tls-self-signed makes a certificate of its own; leave out --tls-cert and --tls-key, or it'
  if (hasTls(tls)) return calledInPlain(pods) ? POD_PORT : null
  const needs = 'needs --tls-cert and --tls-key, or --tls-self-signed'
  if (redirectPort !== null) return `--http-redirect-port ${needs}`
  return hstsSeconds > 0 ? `--hsts ${needs}` : null
}
