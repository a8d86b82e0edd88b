/** Keys: Ctrl-K finds, `/` searches, `g` and a letter opens a page, `j` and `k` move in a table, `?` shows all. */
import { signal } from '@preact/signals'
import { navigate } from './router.ts'

/** True while the list of keys is shown. */
export const keysShown = signal(false)

/** True while the finder is shown. */
export const finderShown = signal(false)

/** Pages by the letter after `g`. */
export const PAGES_BY_KEY: readonly { readonly key: string; readonly path: string; readonly title: string }[] = [
  { key: 'h', path: '/', title: 'Home' },
  { key: 'e', path: '/endpoints', title: 'Endpoints' },
  { key: 'f', path: '/apps', title: 'Apps' },
  { key: 'c', path: '/tasks', title: 'Tasks' },
  { key: 'o', path: '/models', title: 'Models' },
  { key: 'p', path: '/playground', title: 'Playground' },
  { key: 'j', path: '/jobs', title: 'Jobs' },
  { key: 'b', path: '/batches', title: 'Batches' },
  { key: 'm', path: '/machine', title: 'Machine' },
  { key: 'u', path: '/usage', title: 'Usage' },
  { key: 't', path: '/templates', title: 'Templates' },
  { key: 's', path: '/secrets', title: 'Secrets' },
  { key: 'r', path: '/registries', title: 'Registries' },
  { key: 'v', path: '/volumes', title: 'Volumes' },
  { key: 'w', path: '/webhooks', title: 'Webhooks' },
  { key: 'n', path: '/events', title: 'Events' },
  { key: 'l', path: '/alerts', title: 'Alerts' },
  { key: 'k', path: '/keys', title: 'Keys' },
  { key: 'a', path: '/accounts', title: 'Accounts' },
  { key: 'd', path: '/audit', title: 'Audit' },
]

/** Time within which the second key must follow, in milliseconds. */
const SECOND_KEY_MS = 1_500

/** Actions of `j` and `k`; the table that was shown last has them. */
export interface RowKeys {
  readonly move: (by: 1 | -1) => void
}

const tables: RowKeys[] = []

/** Gives a table the row keys until the returned function is called. */
export function takeRowKeys(keys: RowKeys): () => void {
  tables.push(keys)
  return () => void tables.splice(tables.indexOf(keys), 1)
}

/** Listens to keys. Call it once. */
export function listenToKeys(): void {
  let goneMs = Number.NEGATIVE_INFINITY
  addEventListener('keydown', event => {
    // Also while somebody types: browsers have their own use of it, which this page replaces.
    if ((event.metaKey || event.ctrlKey) && !event.altKey && event.key.toLowerCase() === 'k') {
      return handle(event, () => (finderShown.value = true))
    }
    if (event.metaKey || event.ctrlKey || event.altKey || isTyping(event.target)) return
    const isSecond = performance.now() - goneMs < SECOND_KEY_MS
    goneMs = Number.NEGATIVE_INFINITY
    if (isSecond) {
      const page = PAGES_BY_KEY.find(({ key }) => key === event.key)
      if (page !== undefined) return handle(event, () => navigate(page.path))
    }
    if (event.key === '?') return handle(event, () => (keysShown.value = true))
    // An open dialog receives all keys.
    const scope = [...document.querySelectorAll('dialog[open]')].at(-1) ?? document
    if (event.key === 'g' && scope === document) goneMs = performance.now()
    else if (event.key === '/') {
      const search = scope.querySelector<HTMLInputElement>('[data-search]')
      if (search !== null) handle(event, () => search.focus())
    } else if ((event.key === 'j' || event.key === 'k') && tables.length > 0)
      handle(event, () => tables.at(-1)!.move(event.key === 'j' ? 1 : -1))
  })
}

function handle(event: KeyboardEvent, act: () => void): void {
  event.preventDefault()
  act()
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false
  return target.isContentEditable || /^(?:TEXTAREA|SELECT)$/.test(target.tagName) || isTextInput(target)
}

function isTextInput(element: HTMLElement): boolean {
  return element instanceof HTMLInputElement && !/^(?:checkbox|radio|button|submit|range)$/.test(element.type)
}
