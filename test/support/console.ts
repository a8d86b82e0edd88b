/** A browser at the console of a rig. */
import assert from 'node:assert/strict'
import { type Answer, type Asking, CONSOLE, KEY, type Rig } from './rig.ts'

/** Headers of a browser with each request of the console's own page. */
export const OF_PAGE = { origin: CONSOLE, 'sec-fetch-site': 'same-origin' }

/** Both halves of a session, as a browser keeps them. */
export interface SignedIn {
  readonly cookie: string
  readonly token: string
  // biome-ignore lint/suspicious/noExplicitAny: tests read whatever shape they expect.
  readonly who: any
}

/** Tries to sign in from the page of the console. */
export function trySignIn(rig: Rig, body: unknown, asking: Asking = {}): Promise<Answer> {
  const headers = { ...OF_PAGE, 'x-runyard-console': '1', ...asking.headers }
  return rig.ask('POST', '/console/session', { at: CONSOLE, key: null, address: '192.0.2.1', body, ...asking, headers })
}

/** Signs in, and fails where that is refused. */
export async function signIn(rig: Rig, body: unknown = { key: KEY }): Promise<SignedIn> {
  const { status, json, text, headers } = await trySignIn(rig, body)
  assert.equal(status, 200, text)
  return { cookie: cookieOf(headers.get('set-cookie')), token: json.token, who: json }
}

/** Asks as the page of the console does for who is signed in. */
export function askAs(
  rig: Rig,
  { cookie, token }: Pick<SignedIn, 'cookie' | 'token'>,
  line: string,
  asking: Asking = {},
): Promise<Answer> {
  const [method = '', path = ''] = line.split(' ')
  const headers = { ...OF_PAGE, cookie, 'x-runyard-console': token, ...asking.headers }
  return rig.ask(method, path, { at: CONSOLE, key: null, ...asking, headers })
}

/** The pair of a Set-Cookie header that a browser sends back. */
export function cookieOf(setCookie: string | null): string {
  return (setCookie ?? '').split(';', 1)[0]!
}
