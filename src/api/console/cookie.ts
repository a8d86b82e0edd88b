/** The cookie with one half of a session. */
import { consoleCookie, SESSION_MS } from '../../core/accounts/session.ts'

/** Limit of cookies of one name in a request that are tried: a page of another port can add its own, not take this one away. */
const MAX_TRIED = 4

/** The values of the cookie of the console at an origin; usually one. */
export function sessionCookies(request: Request, origin: string): string[] {
  const name = consoleCookie(origin)
  return (request.headers.get('cookie') ?? '')
    .split(';')
    .map(pair => pair.trim())
    .filter(pair => pair.startsWith(`${name}=`))
    .map(pair => pair.slice(name.length + 1))
    .slice(0, MAX_TRIED)
}

/** The value of `Set-Cookie` that keeps it for as long as the session. @param value empty to forget it */
export function setCookie(value: string, origin: string): string {
  const secure = origin.startsWith('https:') ? '; Secure' : ''
  const age = value === '' ? 0 : SESSION_MS / 1_000
  return `${consoleCookie(origin)}=${value}; Path=/; Max-Age=${age}; HttpOnly; SameSite=Strict${secure}`
}
