/** The cookie with one half of a session. */
import { hash } from 'node:crypto'
import { consoleCookie, isConsoleCookieAt, isSecret, MARK_LENGTH, SESSION_MS } from '../../core/accounts/session.ts'

/**
 * Limit of cookies of one name in a request that are tried: a page of another port that has seen the name can add its
 * own, for longer paths, which come first.
 */
const MAX_TRIED = 64
/** Limit of cookies of earlier sessions that one response removes. */
const MAX_REMOVED = 20

/** The cookie values of the session with a token at an origin; usually one, and empty for a text that is no token. */
export function sessionCookies(request: Request, origin: string, token: string): string[] {
  if (!isSecret(token)) return []
  const name = consoleCookie(origin, cookieMark(token))
  const values = readCookies(request).filter(cookie => cookie.name === name && isSecret(cookie.value))
  return [...new Set(values.map(({ value }) => value))].slice(0, MAX_TRIED)
}

/** The value of `Set-Cookie` that keeps it for as long as the session. */
export function setCookie(origin: string, token: string, value: string): string {
  return cookieText(origin, consoleCookie(origin, cookieMark(token)), value)
}

/** The values of `Set-Cookie` that remove the cookies of a request which are of sessions at an origin. */
export function removedCookies(request: Request, origin: string): string[] {
  const names = readCookies(request).flatMap(({ name }) => (isConsoleCookieAt(origin, name) ? [name] : []))
  return [...new Set(names)].slice(0, MAX_REMOVED).map(name => cookieText(origin, name, ''))
}

function cookieText(origin: string, name: string, value: string): string {
  const secure = origin.startsWith('https:') ? '; Secure' : ''
  const age = value === '' ? 0 : SESSION_MS / 1_000
  return `${name}=${value}; Path=/; Max-Age=${age}; HttpOnly; SameSite=Strict${secure}`
}

function readCookies({ headers }: Request): { readonly name: string; readonly value: string }[] {
  return (headers.get('cookie') ?? '').split(';').map(pair => {
    const [name = '', ...value] = pair.trim().split('=')
    return { name, value: value.join('=') }
  })
}

function cookieMark(token: string): string {
  return hash('sha256', `cookie of ${token}`, 'base64url').slice(0, MARK_LENGTH)
}
