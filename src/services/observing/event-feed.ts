import { AppError, invalidFields } from '../../core/errors.ts'
import { Holdings } from '../../core/fair-share.ts'
import { fieldProblem } from '../../core/field-problem.ts'
import type { EndpointId, OwnerId } from '../../core/ids.ts'
import { type Page, type PageRequest, pageProblems } from '../../core/pages.ts'
import type { Emit } from '../../events.ts'
import type { Ports } from '../../ports/ports.ts'
import { type LiveEvent, makeLiveEvent } from './live-event.ts'
import { type EventQuery, LiveEventStream } from './live-event-stream.ts'
import { type NumberedEvent, RecentEvents } from './recent-events.ts'

/** Maximum number of readings of events that an account may have open at once. */
const MAX_EVENT_READINGS = 100
/**
 * Limit of kept events of all accounts; past it those of the account that had no new event for longest are dropped.
 */
const MAX_KEPT = 50_000
/** Limit of endpoints whose owner is cached. */
const MAX_OWNERS = 20_000
/** Default and largest number of events of one page of the kept ones. */
const MAX_PAGE = 200
/** Limit of events that wait until the owner of their endpoint is known; further ones are dropped. */
const MAX_UNOWNED = 1_000

/** The form of the id of an event. */
const CURSOR = /^\w{1,64}-\d{1,15}$/

/** Filter of kept events; null matches any. */
export interface EventFilter {
  readonly endpointId: EndpointId | null
  /** Beginning of the names, such as `worker` for `worker.moved`. */
  readonly kind: string | null
}

/**
 * Keeps the newest events of each account in memory, for readers that follow them. A restart
 * of the server forgets them.
 */
export class EventFeed {
  readonly #ports
  readonly #owners = new Map<EndpointId, OwnerId>()
  /** Events of endpoints whose owner is being read. */
  readonly #unowned = new Map<EndpointId, LiveEvent[]>()
  #unownedEvents = 0
  /** By account, the one with the newest event last. */
  readonly #recent = new Map<OwnerId, RecentEvents>()
  #kept = 0
  readonly #open = new Holdings<OwnerId>()
  readonly #startedAt: string
  #lists = 0

  constructor(ports: Ports) {
    this.#ports = ports
    this.#startedAt = ports.clock.now().toString(36)
  }

  /** A sink of the event stream, which keeps the published events. */
  readonly emit: Emit = (name, fields) => {
    const event = makeLiveEvent(name, fields, this.#ports.clock.now())
    if (event === null) return
    const { owner: ownerOfEvent = null, account } = fields as { owner?: OwnerId; account?: OwnerId }
    const { endpointId } = event
    if (endpointId === null) {
      if (account !== undefined) this.#keep(account, event)
      return
    }
    const owner = ownerOfEvent ?? this.#owners.get(endpointId) ?? null
    if (owner === null) this.#findOwner(endpointId, event)
    else if (this.#unowned.has(endpointId)) this.#owned(endpointId, owner, event)
    else this.#keep(owner, event)
    if (owner !== null && name === 'endpoint.saved') this.#remember(endpointId, owner)
  }

  /** Number of open readings of an account. */
  openBy(owner: OwnerId): number {
    return this.#open.of(owner)
  }

  /** The id of the newest event of an account: a reader that begins after it misses nothing of what follows. */
  newestId(owner: OwnerId): string {
    const recent = this.#openRecent(owner)
    return recent.eventId(recent.newest)
  }

  /**
   * Opens a stream of events, which the caller closes.
   * @throws AppError `rate_limited` when the account reads too many at once
   */
  open(owner: OwnerId, query: EventQuery): LiveEventStream {
    if (this.openBy(owner) >= MAX_EVENT_READINGS) {
      const problem = `${MAX_EVENT_READINGS} readings of events are open already`
      throw new AppError('rate_limited', problem, { retryAfterSeconds: 5 })
    }
    this.#open.add(owner, 1)
    const onClose = () => {
      const readings = this.#open.add(owner, -1)
      const recent = this.#recent.get(owner)
      if (readings === 0 && recent?.size === 0) this.#recent.delete(owner)
    }
    return new LiveEventStream(this.#ports.clock, this.#openRecent(owner), query, onClose)
  }

  /**
   * The kept events of an account that match, newest first. A cursor from before a restart of the server finds none.
   * @throws AppError `invalid` for a limit out of bounds and for a malformed cursor
   */
  list(owner: OwnerId, { endpointId, kind }: EventFilter, request: PageRequest): Page<NumberedEvent> {
    const { cursor = null, limit = MAX_PAGE } = request
    const problems = pageProblems({ limit }, MAX_PAGE)
    if (cursor !== null && !CURSOR.test(cursor)) {
      problems.push(fieldProblem('cursor', 'is not one that an earlier page has returned'))
    }
    if (problems.length > 0) throw invalidFields(problems)
    const recent = this.#recent.get(owner)
    const before = cursor === null ? null : (recent?.numberFromId(cursor) ?? 0)
    const found = recent?.newestFirst(before, limit + 1, event => {
      return (endpointId === null || event.endpointId === endpointId) && (kind === null || kindOf(event) === kind)
    })
    const items = found?.slice(0, limit) ?? []
    return { items, nextCursor: (found?.length ?? 0) > limit ? items.at(-1)!.id : null }
  }

  #openRecent(owner: OwnerId): RecentEvents {
    let recent = this.#recent.get(owner)
    if (recent === undefined) {
      this.#lists += 1
      recent = new RecentEvents(`${this.#startedAt}x${this.#lists}`)
      this.#recent.set(owner, recent)
    }
    return recent
  }

  #keep(owner: OwnerId, event: LiveEvent): void {
    const recent = this.#openRecent(owner)
    this.#recent.delete(owner)
    this.#recent.set(owner, recent)
    this.#kept += recent.add(event)
    for (const [other, { size }] of this.#recent) {
      if (this.#kept <= MAX_KEPT) break
      this.#kept -= size
      this.#recent.get(other)!.clear()
      if (this.openBy(other) === 0) this.#recent.delete(other)
    }
  }

  #remember(endpointId: EndpointId, owner: OwnerId): void {
    if (this.#owners.size >= MAX_OWNERS) this.#owners.clear()
    this.#owners.set(endpointId, owner)
  }

  #findOwner(endpointId: EndpointId, event: LiveEvent): void {
    if (this.#unownedEvents >= MAX_UNOWNED) return
    this.#unownedEvents += 1
    const waiting = this.#unowned.get(endpointId)
    if (waiting !== undefined) {
      waiting.push(event)
      return
    }
    this.#unowned.set(endpointId, [event])
    // The store has the state that an event reports; readers that miss an event read the state again.
    this.#ports.store.endpoints.find(endpointId).then(
      endpoint => this.#owned(endpointId, endpoint?.owner ?? null),
      () => this.#owned(endpointId, null),
    )
  }

  /**
   * Keeps the events that waited for the owner of their endpoint.
   * @param owner null for a deleted endpoint, or one that cannot be read
   */
  #owned(endpointId: EndpointId, owner: OwnerId | null, next?: LiveEvent): void {
    const waiting = this.#unowned.get(endpointId) ?? []
    this.#unowned.delete(endpointId)
    this.#unownedEvents -= waiting.length
    if (owner === null) return
    this.#remember(endpointId, owner)
    for (const event of next === undefined ? waiting : [...waiting, next]) this.#keep(owner, event)
  }
}

function kindOf({ type }: LiveEvent): string {
  return type.slice(0, type.indexOf('.'))
}
