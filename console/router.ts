/** Addresses of pages. Each page and each tab has one, so that it can be stored, shared and returned to. */
import { computed, signal } from '@preact/signals'

const current = signal(new URL(location.href))

/** The path of the page. */
export const path = computed(() => current.value.pathname)
/** The query of the page: its filters and the opened row. */
export const query = computed(() => current.value.searchParams)

addEventListener('popstate', () => {
  current.value = new URL(location.href)
})

/** Goes to an address of the console. @param replace without a step in the history */
export function navigate(to: string, { replace = false } = {}): void {
  const next = new URL(to, location.href)
  if (next.href === location.href) return
  const isOtherPage = next.pathname !== location.pathname
  history[replace ? 'replaceState' : 'pushState'](null, '', next)
  current.value = next
  if (isOtherPage) scrollTo(0, 0)
}

/** Changes some members of the query and keeps the rest; null removes one. */
export function setQuery(changes: Readonly<Record<string, string | null>>, { replace = true } = {}): void {
  const next = new URL(location.href)
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === '') next.searchParams.delete(name)
    else next.searchParams.set(name, value)
  }
  navigate(next.href, { replace })
}

/** The parts of the path that a pattern such as `/endpoints/:id` names; null where it does not match. */
export function matchPath(pattern: string, of: string): Record<string, string> | null {
  const patternParts = pattern.split('/')
  const pathParts = of.replace(/\/$/, '').split('/')
  if (patternParts.length !== pathParts.length) return null
  const named: Record<string, string> = {}
  for (const [at, part] of patternParts.entries()) {
    if (part.startsWith(':')) named[part.slice(1)] = decoded(pathParts[at]!)
    else if (part !== pathParts[at]) return null
  }
  return named
}

/** A decoded part of a path; unchanged if it has a `%` that begins no escape. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/** Follows links of the console without loading the page again. Call it once. */
export function followLinks(): void {
  addEventListener('click', event => {
    const link = (event.target as Element | null)?.closest?.('a')
    if (link == null || event.defaultPrevented || event.button !== 0) return
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    if (link.origin !== location.origin || link.target !== '' || link.hasAttribute('download')) return
    if (/^\/(?:v1|v2|graphql|ops)(?:\/|$)/.test(link.pathname)) return
    // The browser itself scrolls to a place in the page.
    if (link.hash !== '' && link.pathname + link.search === location.pathname + location.search) return
    event.preventDefault()
    navigate(link.href)
  })
}
