/** Where the console is, and which requests come from its own page. */
import { AppError } from '../../core/errors.ts'
import type { Addresses } from '../addresses.ts'

/** The header in which the page sends its half of the session. No page of another origin can set it. */
export const TOKEN_HEADER = 'x-runyard-console'

/** The name that the console has on the machine itself. No endpoint has it, whether there is a console or not. */
export const LOCAL_CONSOLE = 'console.localhost'

/** The origin of the console; null where there is none. */
export type ConsoleUrl = () => string | null

/** The origin of the console among the addresses of the server. */
export function consoleUrlOf(addresses: () => Addresses): ConsoleUrl {
  return () => addresses().consoleUrl ?? null
}

/**
 * Whether the host of a request is that of the console. Ports do not matter: browsers give all of them the same cookies.
 * @param hostname as `URL` has it
 */
export function isConsoleHost(consoleUrl: ConsoleUrl): (hostname: string) => boolean {
  let known: { readonly url: string | null; readonly host: string | null } = { url: null, host: null }
  return hostname => {
    const url = consoleUrl()
    // It comes once, when the server listens.
    if (url !== known.url) known = { url, host: url === null ? null : plain(new URL(url).hostname) }
    const name = plain(hostname)
    return name === LOCAL_CONSOLE || name === known.host
  }
}

/** Whether a host is this machine itself, as somebody names it who tries the server out. @param hostname as `URL` has it */
export function isLoopbackHost(hostname: string): boolean {
  return /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(plain(hostname))
}

/** @throws AppError `forbidden` for a request that no page of the console has sent */
export function requireOwnPage({ method, headers }: Request, url: string): void {
  const site = headers.get('sec-fetch-site')
  const from = headers.get('origin')
  if (from !== null && from !== url) {
    throw new AppError(
      'forbidden',
      `this page is at ${from}, but the console is at ${url}; open it there, or start the server with --console-url`,
    )
  }
  if (site !== null && site !== 'same-origin') throw foreign()
  if (from === null && method !== 'GET' && method !== 'HEAD') throw foreign()
}

function foreign(): AppError {
  return new AppError('forbidden', 'at this address only the page of the console is answered; others use an API key')
}

function plain(hostname: string): string {
  return hostname.endsWith('.') ? hostname.slice(0, -1) : hostname
}
