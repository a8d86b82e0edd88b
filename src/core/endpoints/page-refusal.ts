import type { EndpointId } from '../ids.ts'
import { isPageOrigin } from './endpoint.ts'

/** Origin that browsers send for a page without one: of a file, of a frame in a sandbox. */
const NO_ORIGIN = 'null'

/** Maximum length of an origin that is shown. */
const MAX_SHOWN = 200

/**
 * The origin of a page as it is shown: `null` for a page without one.
 * @param origin the `Origin` of a request, which may be any text
 */
export function shownOrigin(origin: string): string {
  return origin.length <= MAX_SHOWN && origin !== '*' && isPageOrigin(origin) ? origin : NO_ORIGIN
}

/**
 * The refusal of a page that calls an endpoint, with the command that allows it. It is the same for an endpoint
 * that does not exist.
 * @param origin from {@link shownOrigin}
 * @param id null for the models of all endpoints
 */
export function pageRefusal(origin: string, id: EndpointId | null): string {
  const called = id === null ? 'models' : `endpoint ${id}`
  if (origin === NO_ORIGIN)
    return `a page without an origin, such as one of a file, may not call ${called}: serve the page over http, and name its origin with ${id === null ? '--cors-origin' : '--cors-origins'}`
  if (id === null)
    return `pages of ${origin} may not call models: allow them with --cors-origin ${origin} of runyard serve`
  const update = `runyard endpoints update ${id} --cors-origins ${origin}`
  return `pages of ${origin} may not call ${called}: allow them with "${update}", or for all endpoints with --cors-origin of runyard serve`
}
