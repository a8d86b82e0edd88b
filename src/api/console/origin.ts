/** The origin of the console, and the requests that come from its own page. */
import { AppError } from '../../core/errors.ts'

/** The header in which the page sends its half of the session. No page of another origin can set it. */
export const TOKEN_HEADER = 'x-runyard-console'

/** The host name of the console on the machine itself. No endpoint has it, even without a console. */
export const LOCAL_CONSOLE = 'console.localhost'

/**
 * Predicate of the host of the console. Ports do not matter: browsers send all of them the same cookies.
 * @param consoleUrl the origin of the console; null without a console
 * @param hostname as `URL` has it
 */
export function isConsoleHost(consoleUrl: string | null): (hostname: string) => boolean {
  const host = consoleUrl === null ? null : withoutFinalDot(new URL(consoleUrl).hostname)
  return hostname => {
    const name = withoutFinalDot(hostname)
    return name === LOCAL_CONSOLE || name === host
  }
}

/**
 * True if a host is this machine itself, by a name that a user types to try the server.
 * @param hostname as `URL` has it
 */
export function isLoopbackHost(hostname: string): boolean {
  return /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(withoutFinalDot(hostname))
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
  if (site !== null && site !== 'same-origin') throw refuseOrigin()
  if (from === null && method !== 'GET' && method !== 'HEAD') throw refuseOrigin()
}

function refuseOrigin(): AppError {
  return new AppError('forbidden', 'at this address only the page of the console is answered; others use an API key')
}

function withoutFinalDot(hostname: string): string {
  return hostname.endsWith('.') ? hostname.slice(0, -1) : hostname
}
