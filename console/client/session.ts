/** Who is signed in. The browser has a cookie that scripts cannot read, and a token that is bound to this origin; both are needed. */
import { signal } from '@preact/signals'
import { Backoff, pause } from './event-source.ts'

/** What a key may do with jobs: of all endpoints, or by endpoint. */
type Level = 'none' | 'read' | 'write'

/** The rights of the key of the session. */
export type Scope =
  | { readonly type: 'all' | 'read-only' }
  | { readonly type: 'restricted'; readonly management: Level; readonly jobs: Level | Readonly<Record<string, Level>> }

/** The session as the server tells it. */
export interface Who {
  readonly account: { readonly id: string; readonly name: string }
  readonly keyId: string
  readonly keyName: string
  readonly scope: Scope
  /** Whether the key may manage accounts and see the machine. */
  readonly operator: boolean
  readonly expiresAt: string
  readonly server: {
    readonly version: string
    /** Base address of the public API, for commands and snippets. */
    readonly url: string
  }
}

const TOKEN = 'runyard.token'
/** Where the last inputs are; they go when somebody signs out, since the browser may be that of several people. */
export const INPUTS = 'runyard.inputs'

/** Null: nobody is signed in. Undefined: not known yet. */
export const who = signal<Who | null | undefined>(undefined)
/** Whether the server does not tell who is signed in, and is asked again. */
export const isAway = signal(false)
/** Why a one-time link signed nobody in. */
export const linkProblem = signal<string | null>(null)

/** A one-time link that was opened, with what it signs in as. */
export interface LinkOffer {
  readonly link: string
  readonly account: { readonly id: string; readonly name: string }
  readonly keyId: string
  readonly keyName: string
}

/** The link that was opened and not answered yet; null for none. Anybody can make somebody open one, so it signs in nobody by itself. */
export const linkOffer = signal<LinkOffer | null>(null)

/**
 * The half of the session that this page acts with. It is not read from the storage for each request: another tab may have signed in as
 * somebody else, for whom this page does nothing before it shows who that is.
 */
let token = ''

/** Headers that every request with the session has. */
export function sessionHeaders(): Record<string, string> {
  return { 'x-runyard-console': token === '' ? '1' : token }
}

/** Reads the session, from the one-time link in the address where there is one, and follows what other tabs do. To be called once. */
export async function resumeSession(): Promise<void> {
  addEventListener('storage', followTabs)
  addEventListener('pageshow', followTabs)
  // A link that is opened where the page is already loads nothing.
  addEventListener('hashchange', () => void takeLink())
  await takeLink()
  await readSession()
}

/** Reads what the link in the address signs in as, where there is one. */
async function takeLink(): Promise<void> {
  const link = new URLSearchParams(location.hash.slice(1)).get('link')
  if (link === null) return
  // A link works once; it does not stay in the history of the browser.
  history.replaceState(null, '', location.pathname + location.search)
  const answer = await post<LinkOffer>('/console/session/link', { link })
  linkProblem.value = typeof answer === 'string' ? answer : null
  linkOffer.value = typeof answer === 'string' ? null : { ...answer, link }
}

/** Answers the link that was opened: signs in with it, or leaves it. */
export async function answerLink(isWanted: boolean): Promise<void> {
  const offer = linkOffer.value
  if (offer !== null && isWanted) linkProblem.value = await signIn({ link: offer.link })
  linkOffer.value = null
}

/** Another tab has signed in or out. What the page shows of the account before goes first. */
function followTabs(): void {
  if (who.value === undefined || (localStorage.getItem(TOKEN) ?? '') === token) return
  who.value = undefined
  void readSession()
}

/** Reads who is signed in, again and again while the server is away. */
async function readSession(): Promise<void> {
  const backoff = new Backoff()
  for (;;) {
    token = localStorage.getItem(TOKEN) ?? ''
    if (token === '') break
    const response = await fetch('/console/session', { headers: sessionHeaders() }).catch(() => null)
    const found = response?.ok === true ? ((await response.json().catch(() => null)) as Who | null) : null
    // Another tab has signed in or out meanwhile.
    if (localStorage.getItem(TOKEN) !== token) continue
    if (found !== null) {
      isAway.value = false
      who.value = found
      return
    }
    if (response?.status === 401) break
    isAway.value = true
    await pause(backoff.next(), NEVER)
  }
  isAway.value = false
  ended()
}

const NEVER = new AbortController().signal

/** Signs in with a key or a one-time link. Returns null, or why that failed. */
export async function signIn(credential: { readonly key: string } | { readonly link: string }): Promise<string | null> {
  const answer = await post<Who & { readonly token: string }>('/console/session', credential)
  if (typeof answer === 'string') return answer
  token = answer.token
  localStorage.setItem(TOKEN, token)
  linkProblem.value = null
  who.value = answer
  return null
}

/** The answer of the server before anybody is signed in; a sentence where it refuses. */
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
  ended(used)
}

/** The session is over: the key ended, or another tab signed out. @param used the headers that the server refused; nothing happens to a newer session */
export function ended(used = sessionHeaders()): void {
  if (used['x-runyard-console'] !== sessionHeaders()['x-runyard-console']) return
  // Another tab may have signed in since.
  if (localStorage.getItem(TOKEN) === token) localStorage.removeItem(TOKEN)
  token = ''
  who.value = null
}

/** Whether the key may read or write in management. */
export function mayManage(level: 'read' | 'write'): boolean {
  const scope = who.value?.scope
  if (scope === undefined) return false
  if (scope.type !== 'restricted') return scope.type === 'all' || level === 'read'
  return covers(scope.management, level)
}

/** Whether the key may read or write the jobs of an endpoint. */
export function mayUseJobs(level: 'read' | 'write', endpointId: string): boolean {
  const scope = who.value?.scope
  if (scope === undefined) return false
  if (scope.type !== 'restricted') return scope.type === 'all' || level === 'read'
  return covers(typeof scope.jobs === 'string' ? scope.jobs : (scope.jobs[endpointId] ?? 'none'), level)
}

/** Whether the key may manage accounts and see the machine. */
export function mayOperate(): boolean {
  return who.value?.operator === true
}

function covers(has: Level, needs: 'read' | 'write'): boolean {
  return has === 'write' || has === needs
}
