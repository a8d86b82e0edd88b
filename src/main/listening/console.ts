/** Where the console of a run of the server is. */

import { givenConsoleUrl } from '../../config/addresses.ts'
import type { Config } from '../../config/config.ts'
import { isLoopback } from '../../server/listener.ts'

/** The origin of the console; null where it is off, or nobody could reach it without --console-url. @param managementUrl where management listens */
export function consoleUrlFor(
  { consoleUrl, adminPort, adminHost, host }: Pick<Config, 'consoleUrl' | 'adminPort' | 'adminHost' | 'host'>,
  managementUrl: string,
): string | null {
  if (consoleUrl !== null) return givenConsoleUrl({ consoleUrl })
  const listens = adminPort === null ? host : adminHost
  // Browsers take names below localhost for this machine.
  const isHere = isLoopback(listens) || listens === '0.0.0.0' || listens === '::'
  if (!isHere) return null
  const { protocol, port } = new URL(managementUrl)
  return new URL(`${protocol}//console.localhost${port === '' ? '' : `:${port}`}`).origin
}

/** The host of the console that the settings name; null for none. */
export function givenConsoleHost(config: Pick<Config, 'consoleUrl'>): string | null {
  const url = givenConsoleUrl(config)
  return url === null ? null : new URL(url).hostname
}

/** Whether what is typed at the console could be read on its way. */
export function isReadableOnItsWay(consoleUrl: string): boolean {
  const { protocol, hostname } = new URL(consoleUrl)
  return protocol === 'http:' && !hostname.endsWith('.localhost')
}
