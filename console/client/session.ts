/** Who is signed in. The browser has a cookie that scripts cannot read, and a token that is bound to this origin; both are needed. */
import { signal } from '@preact/signals'

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

/** Null: nobody is signed in. Undefined: not known yet. */
export const who = signal<Who | null | undefined>(undefined)

/** Headers that every request with the session has. */
export function sessionHeaders(): Record<string, string> {
  return { 'x-runyard-console': localStorage.getItem(TOKEN) ?? '1' }
}

/** Reads the session, from the one-time link in the address where there is one. */
export async function resumeSession(): Promise<void> {
  const link = new URLSearchParams(location.hash.slice(1)).get('link')
  // A link works once; it does not stay in the history of the browser.
  if (link !== null) history.replaceState(null, '', location.pathname + location.search)
  if (link !== null && (await signIn({ link })) === null) return
  const response = await fetch('/console/session', { headers: sessionHeaders() })
  who.value = response.ok ? ((await response.json()) as Who) : null
}

/** Signs in with a key or a one-time link. Returns null, or why that failed. */
export async function signIn(credential: { readonly key: string } | { readonly link: string }): Promise<string | null> {
  const response = await fetch('/console/session', {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-runyard-console': '1' },
    body: JSON.stringify(credential),
  }).catch(() => null)
  if (response === null) return 'The server does not answer.'
  const body = (await response.json()) as Who & { readonly token: string; readonly error?: string }
  if (!response.ok) return body.error ?? `The server answered ${response.status}.`
  localStorage.setItem(TOKEN, body.token)
  who.value = body
  return null
}

/** Ends the session on the server and in this browser. */
export async function signOut(): Promise<void> {
  await fetch('/console/session', { method: 'DELETE', headers: sessionHeaders() }).catch(() => {})
  ended()
}

/** The session is over: the key ended, or another tab signed out. */
export function ended(): void {
  localStorage.removeItem(TOKEN)
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
