import { flag, optional, PATH, setting, wholeNumber } from './setting.ts'

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
      'for how long browsers are told to use HTTPS alone for this host; 0 tells them nothing',
    ),
  },
}

/** Where the certificate of the server comes from, and what HTTPS adds. */
export interface TlsSettings {
  readonly certFile: string | null
  readonly keyFile: string | null
  readonly selfSigned: boolean
  readonly redirectPort: number | null
  readonly hstsSeconds: number
}

/** Whether the listeners for clients and for management speak HTTPS. */
export function hasTls({ certFile, selfSigned }: TlsSettings): boolean {
  return certFile !== null || selfSigned
}

/** Where pods call the server. */
export interface CallsOfPods {
  readonly where: string
  readonly workerUrl: string | null
  readonly workerPort: number
}

const POD_PORT =
  '--kubernetes-worker-port 0 lets pods call the port of clients, which speaks HTTPS then; give them a port of their own'

function calledInPlain({ where, workerUrl, workerPort }: CallsOfPods): boolean {
  return where !== 'off' && workerPort === 0 && workerUrl?.startsWith('https:') !== true
}

/** Why settings of HTTPS do not fit together; null when they do. */
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
