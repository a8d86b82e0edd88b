import { HTTP_ORIGIN, optional, type ValueKind } from './setting.ts'

/** An origin as browsers send it, or `off`. */
const CONSOLE_ORIGIN: ValueKind<string> = {
  check: text =>
    text === 'off' || (HTTP_ORIGIN.check(text) === null && !text.includes('@'))
      ? null
      : 'must be off or an http or https origin without a path, such as https://console.example',
  parse: text => (text === 'off' ? text : new URL(text).origin),
}

/** The settings of the console. */
export const CONSOLE_SETTINGS = {
  /** `off`, or null for a host below localhost. */
  consoleUrl: optional(
    '--console-url',
    '<url|off>',
    CONSOLE_ORIGIN,
    'address of the console in browsers, with a host of its own, or off (default: console.localhost with the port of management)',
  ),
}

/** The settings that have names by which clients call the server. */
export interface ClientNames {
  readonly consoleUrl: string | null
  readonly publicUrl: string | null
  readonly queueUrl: string | null
  readonly lbDomain: string | null
  readonly host: string
  readonly adminHost: string
  readonly allowedHosts: readonly string[]
}

/**
 * Why the console cannot be where the settings want it; null when it can. Only pages of the console may be at its host, on whatever
 * port: code of endpoints there would be taken for it, and no client with a key would be answered.
 */
export function consoleClash(names: ClientNames): string | null {
  const { publicUrl, queueUrl, lbDomain, host, adminHost, allowedHosts } = names
  const consoleUrl = givenConsoleUrl(names)
  if (consoleUrl === null) return null
  const own = hostOf(consoleUrl)
  const hint = 'give the console a host of its own, such as https://console.example'
  const flags: readonly (readonly [flag: string, host: string | null])[] = [
    ['--public-url', publicUrl === null ? null : hostOf(publicUrl)],
    ['--queue-url', queueUrl === null ? null : hostOf(queueUrl)],
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

/** The origin of the console that the settings name; null for none, and where it is off. */
export function givenConsoleUrl({ consoleUrl }: Pick<ClientNames, 'consoleUrl'>): string | null {
  return consoleUrl === 'off' ? null : consoleUrl
}

function hostOf(url: string): string {
  return new URL(url).hostname.replace(/\.$/, '')
}
