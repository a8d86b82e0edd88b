/** Where the console of a run of the server is. */
import type { Config } from '../config/config.ts'
import { isLoopback } from '../server/listener.ts'

/** The origin of the console; null where it is off, or nobody could reach it without --console-url. @param managementUrl where management listens */
export function consoleUrlFor(
  { consoleUrl, adminPort, adminHost, host }: Pick<Config, 'consoleUrl' | 'adminPort' | 'adminHost' | 'host'>,
  managementUrl: string,
): string | null {
  if (consoleUrl !== null) return consoleUrl === 'off' ? null : consoleUrl
  const listens = adminPort === null ? host : adminHost
  // Browsers take names below localhost for this machine.
  const isHere = isLoopback(listens) || listens === '0.0.0.0' || listens === '::'
  return isHere ? new URL(`http://console.localhost:${new URL(managementUrl).port || '80'}`).origin : null
}

/** The host of the console that the settings name; null for none. */
export function givenConsoleHost({ consoleUrl }: Pick<Config, 'consoleUrl'>): string | null {
  return consoleUrl === null || consoleUrl === 'off' ? null : new URL(consoleUrl).hostname
}

/** Whether what is typed at the console could be read on its way. */
export function isReadableOnItsWay(consoleUrl: string): boolean {
  const { protocol, hostname } = new URL(consoleUrl)
  return protocol === 'http:' && !hostname.endsWith('.localhost')
}
