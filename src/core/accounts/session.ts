import type { KeyId, OwnerId } from '../ids.ts'

/** How long somebody stays signed in to the console, in milliseconds. It is fixed: use does not lengthen it. */
export const SESSION_MS = 12 * 60 * 60_000

/** Limit of sessions of one account; a new one ends the oldest. */
export const MAX_SESSIONS = 100

/** How long a link signs in, in milliseconds. It does so once. */
export const LINK_MS = 10 * 60_000

/** Limits of links that wait to be used: of one account, and of all; a new one ends the oldest. */
export const MAX_LINKS = { ofAccount: 10, ofAll: 1_000 } as const

/** Random bytes of each half of a session, and of the code of a link. */
export const SECRET_BYTES = 32

/** Number of characters of a hash of the token of a session that are in the name of its cookie. */
export const MARK_LENGTH = 12

/** Begins the name of the cookie of each console; those of other consoles of the machine differ behind it. */
const COOKIE = 'runyard-console'
/** Browsers take a cookie of this name only from its own host over TLS, for all paths. */
const HOST_PREFIX = '__Host-'

/** Somebody signed in to the console with a key. The store has a hash of its two halves, and neither of them. */
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
  /** Kept by the page of one origin, and sent in a header, which no other origin can do. */
  readonly token: string
}

/** What is hashed of a session; null for halves that this server cannot have given out. */
export function sessionText({ cookie, token }: SessionHalves): string | null {
  return isSecret(cookie) && isSecret(token) ? `console:${cookie}:${token}` : null
}

/** Whether a text has the form of a half of a session, or of the code of a link. */
export function isSecret(text: string): boolean {
  return /^[A-Za-z0-9_-]{43}$/.test(text)
}

/**
 * The name of the cookie of a session of the console at an origin. Browsers send a cookie to all ports of its host, so the port is in the
 * name: two servers of one machine would end each other's sessions. The mark of the session is, too: who does not know it cannot put
 * another cookie in its place.
 * @param mark of the token of the session, see {@link MARK_LENGTH}
 */
export function consoleCookie(origin: string, mark: string): string {
  return `${beginningOf(origin)}-${mark}`
}

/** True when a name is that of the cookie of some session of the console at an origin. */
export function isCookieOf(origin: string, name: string): boolean {
  const beginning = `${beginningOf(origin)}-`
  return name.startsWith(beginning) && name.length === beginning.length + MARK_LENGTH
}

function beginningOf(origin: string): string {
  const { protocol, port } = new URL(origin)
  return `${protocol === 'https:' ? HOST_PREFIX : ''}${COOKIE}${port === '' ? '' : `-${port}`}`
}

/** Whether a name is that of the cookie of some console. Browsers differ on the case of the prefix. */
export function isConsoleCookie(name: string): boolean {
  const plain = name.trim().toLowerCase()
  const rest = plain.startsWith(HOST_PREFIX.toLowerCase()) ? plain.slice(HOST_PREFIX.length) : plain
  return rest === COOKIE || rest.startsWith(`${COOKIE}-`)
}
