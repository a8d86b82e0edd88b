import type { KeyId, OwnerId } from '../ids.ts'

/** Lifetime of a session of the console, in milliseconds. Use does not extend it. */
export const SESSION_MS = 12 * 60 * 60_000

/** Limit of sessions of one account; a new one ends the oldest. */
export const MAX_SESSIONS = 100

/** Lifetime of a sign-in link, in milliseconds. It works once. */
export const LINK_MS = 10 * 60_000

/** Limits of unused links: of one account, and of all; a new one ends the oldest. */
export const MAX_LINKS = { ofAccount: 10, ofAll: 1_000 } as const

/** Random bytes of each half of a session, and of the code of a link. */
export const SECRET_BYTES = 32

/** Characters of the hash of a session's token in the name of its cookie. */
export const MARK_LENGTH = 12

/** Prefix of the name of each console's cookie; the rest distinguishes the consoles of a machine. */
const COOKIE = 'runyard-console'
/** Browsers accept a cookie with this prefix only from its own host over TLS, for all paths. */
const HOST_PREFIX = '__Host-'

/** A person signed in to the console with a key. The store has a hash of the two halves and neither half. */
export interface Session {
  readonly hash: string
  readonly owner: OwnerId
  readonly keyId: KeyId
  readonly createdAtMs: number
  readonly expiresAtMs: number
}

/** The two halves of a session. Each is useless without the other. */
export interface SessionHalves {
  /** In a cookie, which scripts cannot read. */
  readonly cookie: string
  /** Stored by the page of one origin, which sends it in a header; no other origin can do that. */
  readonly token: string
}

/** Text that is hashed for a session; null for halves that this server cannot have issued. */
export function sessionText({ cookie, token }: SessionHalves): string | null {
  return isSecret(cookie) && isSecret(token) ? `console:${cookie}:${token}` : null
}

/** True if a text has the form of a half of a session, or of the code of a link. */
export function isSecret(text: string): boolean {
  return /^[A-Za-z0-9_-]{43}$/.test(text)
}

/**
 * Name of the cookie of a session of the console at an origin. Browsers send a cookie to all ports of its host, so
 * the name contains the port: two servers of one machine would otherwise end each other's sessions. It also
 * contains the mark of the session, so that nobody without the token can replace the cookie.
 * @param mark of the token of the session, see {@link MARK_LENGTH}
 */
export function consoleCookie(origin: string, mark: string): string {
  return `${cookiePrefix(origin)}-${mark}`
}

/** True if the name is that of a cookie of some session of the console at an origin. */
export function isConsoleCookieAt(origin: string, name: string): boolean {
  const beginning = `${cookiePrefix(origin)}-`
  return name.startsWith(beginning) && name.length === beginning.length + MARK_LENGTH
}

function cookiePrefix(origin: string): string {
  const { protocol, port } = new URL(origin)
  return `${protocol === 'https:' ? HOST_PREFIX : ''}${COOKIE}${port === '' ? '' : `-${port}`}`
}

/** True if the name is that of a cookie of some console. Browsers differ on the case of the prefix. */
export function isConsoleCookie(name: string): boolean {
  const plain = name.trim().toLowerCase()
  const rest = plain.startsWith(HOST_PREFIX.toLowerCase()) ? plain.slice(HOST_PREFIX.length) : plain
  return rest === COOKIE || rest.startsWith(`${COOKIE}-`)
}
