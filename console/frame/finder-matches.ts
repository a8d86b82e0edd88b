/** Pages and endpoints that a text finds. */

/** A place that the finder can go to. */
export interface Place {
  readonly title: string
  /** Kind of the place, beside its title: a page, or the id of an endpoint. */
  readonly note: string
  readonly path: string
}

const MAX_SHOWN = 12

/**
 * The places whose title or note has the text, those that begin with it first; the first ones for an empty text.
 */
export function findPlaces(places: readonly Place[], text: string): readonly Place[] {
  const wanted = text.trim().toLowerCase()
  const rank = ({ title, note }: Place) => {
    const names = [title.toLowerCase(), note.toLowerCase()]
    if (names.some(name => name.startsWith(wanted))) return 0
    return names.some(name => name.includes(wanted)) ? 1 : null
  }
  return places
    .map(place => ({ place, rank: rank(place) }))
    .filter(one => one.rank !== null)
    .sort((a, b) => a.rank! - b.rank!)
    .slice(0, MAX_SHOWN)
    .map(({ place }) => place)
}

/** True for a text that may be the id of a job, a worker or a batch. */
export function isIdLike(text: string): boolean {
  const id = text.trim()
  return id.length >= 8 && id.length <= 100 && /^[\w.-]+$/.test(id)
}

/** The address of a found object. */
export function objectPath({ kind, id, endpointId }: Located): string {
  const of = `/endpoints/${encodeURIComponent(endpointId)}`
  if (kind === 'job') return `${of}/requests?job=${encodeURIComponent(id)}`
  return kind === 'worker' ? `${of}/workers?worker=${encodeURIComponent(id)}` : of
}

/** An object as the server located it by its id. */
export interface Located {
  readonly kind: 'endpoint' | 'worker' | 'job'
  readonly id: string
  readonly endpointId: string
}
