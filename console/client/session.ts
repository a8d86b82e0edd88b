/**
 * The session: the browser has a cookie that scripts cannot read, and a token that is bound to this origin; a request
 * needs both.
 */
import { signal } from '@preact/signals'
import { noteServerDate } from '../server-clock.ts'
import { Backoff, pause } from './event-source.ts'

/** Rights of a key on jobs: of all endpoints, or by endpoint. */
type Level = 'none' | 'read' | 'write'

/** The rights of the key of the session. */
export type Scope =
  | { readonly type: 'all' | 'read-only' }
  | { readonly type: 'restricted'; readonly management: Level; readonly jobs: Level | Readonly<Record<string, Level>> }

/** The session as the server reports it. */
export interface Session {
  readonly account: { readonly id: string; readonly name: string }
  readonly keyId: string
  readonly keyName: string
  readonly scope: Scope
  /** True if the key may manage accounts and see the machine. */
  readonly operator: boolean
  readonly expiresAt: string
  /** The newest event before the session was read; null for a key that may not read events. */
  readonly lastEventId: string | null
  readonly server: {
    readonly version: string
    /** Base address of the public API, for commands and snippets. */
    readonly url: string
    /** Base address of job operations. */
    readonly queueUrl: string
  }
}

const TOKEN = 'runyard.token'
/** Storage key of the last inputs; a sign-out removes them, since several people may share the browser. */
export const INPUTS = 'runyard.inputs'

/** The session of the page. Null: nobody is signed in. Undefined: not read yet. */
export const who = signal<Session | null | undefined>(undefined)
/** True while the server does not report the session; the page asks again. */
export const isAway = signal(false)
/** Reason why the last session of the page ended; null without one, and after a sign-out. */
export const endReason = signal<string | null>(null)
/** Reason why a one-time link did not sign in; null without a failure. */
export const linkProblem = signal<string | null>(null)

/** A one-time link that was opened, with the key that it signs in as. */
export interface LinkOffer {
  readonly link: string
  readonly account: { readonly id: string; readonly name: string }
  readonly keyId: string
  readonly keyName: string
}

/**
 * The opened link that waits for a decision; null for none. Anybody can make somebody open one, so it
 * signs in nobody by itself.
 */
export const linkOffer = signal<LinkOffer | null>(null)

/**
 * The token of the session that this page acts with. It is not read from the storage for each request: another tab may
 * have signed in as somebody else, and this page does nothing for that account before it shows its name.
 */
let token = ''

/** Headers that every request with the session has. */
export function sessionHeaders(): Record<string, string> {
  return { 'x-runyard-console': token === '' ? '1' : token }
}

/** Reads the session, from the one-time link in the address if there is one, and follows other tabs. Call it once. */
export async function resumeSession(): Promise<void> {
  addEventListener('storage', followTabs)
  addEventListener('pageshow', followTabs)
  // A link that is opened in a loaded page does not load it again.
  addEventListener('hashchange', () => void takeLink())
  await takeLink()
  await readSession()
}

/** Reads the session that the link in the address would start, if there is one. */
async function takeLink(): Promise<void> {
  const link = new URLSearchParams(location.hash.slice(1)).get('link')
  if (link === null) return
  // A link works once; it does not stay in the history of the browser.
  history.replaceState(null, '', location.pathname + location.search)
  const answer = await post<LinkOffer>('/console/session/link', { link })
  linkProblem.value = typeof answer === 'string' ? answer : null
  linkOffer.value = typeof answer === 'string' ? null : { ...answer, link }
}

/** Decides on the opened link: signs in with it, or drops it. */
export async function answerLink(isWanted: boolean): Promise<void> {
  const offer = linkOffer.value
  if (offer !== null && isWanted) linkProblem.value = await signIn({ link: offer.link })
  linkOffer.value = null
}

/** Follows a sign-in or a sign-out in another tab. First removes the data of the previous account from the page. */
function followTabs(): void {
  if (who.value === undefined || (localStorage.getItem(TOKEN) ?? '') === token) return
  who.value = undefined
  void readSession()
}

/** Reads the session, repeatedly while the server does not answer. */
async function readSession(): Promise<void> {
  const backoff = new Backoff()
  for (;;) {
    token = localStorage.getItem(TOKEN) ?? ''
    if (token === '') break
    const response = await fetch('/console/session', { headers: sessionHeaders() }).catch(() => null)
    const session = response?.ok === true ? ((await response.json().catch(() => null)) as Session | null) : null
    // Another tab signed in or out in the meantime.
    if (localStorage.getItem(TOKEN) !== token) continue
    if (response !== null) noteServerDate(response)
    if (session !== null) {
      isAway.value = false
      who.value = session
      return
    }
    if (response?.status === 401) {
      isAway.value = false
      return noteSessionEnd(sessionHeaders(), await reasonOf(response))
    }
    isAway.value = true
    await pause(backoff.next(), NEVER)
  }
  isAway.value = false
  noteSessionEnd()
}

const NEVER = new AbortController().signal

/** The reason in a refusal; null if it has none. */
async function reasonOf(response: Response): Promise<string | null> {
  const body = (await response.json().catch(() => null)) as { readonly error?: string } | null
  return body?.error ?? null
}

/** Signs in with a key or a one-time link. Returns null, or the reason of a failure. */
export async function signIn(credential: { readonly key: string } | { readonly link: string }): Promise<string | null> {
  const answer = await post<Session & { readonly token: string }>('/console/session', credential)
  if (typeof answer === 'string') return answer
  token = answer.token
  localStorage.setItem(TOKEN, token)
  linkProblem.value = null
  endReason.value = null
  who.value = answer
  return null
}

/** The answer of the server before anybody is signed in; a sentence if it refuses. */
async function post<Answer extends object>(path: string, credential: object): Promise<Answer | string> {
  const response = await fetch(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-runyard-console': '1' },
    body: JSON.stringify(credential),
  }).catch(() => null)
  if (response === null) return 'The server does not answer.'
  const body = (await response.json().catch(() => null)) as (Answer & { readonly error?: string }) | null
  return response.ok && body !== null ? body : (body?.error ?? `The server answered ${response.status}.`)
}

/** Ends the session on the server and in this browser. */
export async function signOut(): Promise<void> {
  const used = sessionHeaders()
  await fetch('/console/session', { method: 'DELETE', headers: used }).catch(() => {})
  localStorage.removeItem(INPUTS)
  noteSessionEnd(used)
}

/**
 * Ends the session here: the key ended, or another tab signed out. Does nothing to a newer session.
 * @param used headers that the server refused
 * @param reason shown to the person who signs in again; null for a sign-out
 */
export function noteSessionEnd(used = sessionHeaders(), reason: string | null = null): void {
  if (used['x-runyard-console'] !== sessionHeaders()['x-runyard-console']) return
  // Another tab may have signed in since then.
  if (localStorage.getItem(TOKEN) === token) localStorage.removeItem(TOKEN)
  token = ''
  endReason.value = reason
  who.value = null
}

/** True if the key may read or write in management. */
export function mayManage(level: 'read' | 'write'): boolean {
  const scope = who.value?.scope
  if (scope === undefined) return false
  if (scope.type !== 'restricted') return scope.type === 'all' || level === 'read'
  return covers(scope.management, level)
}

/** True if the key may read or write the jobs of an endpoint. */
export function mayUseJobs(level: 'read' | 'write', endpointId: string): boolean {
  const scope = who.value?.scope
  if (scope === undefined) return false
  if (scope.type !== 'restricted') return scope.type === 'all' || level === 'read'
  return covers(typeof scope.jobs === 'string' ? scope.jobs : (scope.jobs[endpointId] ?? 'none'), level)
}

/** True if the key may manage accounts and see the machine. */
export function mayOperate(): boolean {
  return who.value?.operator === true
}

function covers(has: Level, needs: 'read' | 'write'): boolean {
  return has === 'write' || has === needs
}
