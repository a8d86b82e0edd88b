import { type ByteStream, KubernetesError } from '../../src/drivers/kubernetes/api.ts'
import type { Life } from '../life.ts'
import type { SeededRandom } from '../random.ts'
import type { World } from '../world.ts'
import type { ApiFaults } from './api-faults.ts'
import type { AnyObject, Kind, ObjectEvent, Objects } from './objects.ts'

/** Parts that a stream of events uses. */
export interface StreamParts {
  readonly world: World
  readonly objects: Objects
  readonly life: Life
  readonly random: SeededRandom
  readonly faults: () => ApiFaults
  readonly isAway: () => boolean
  readonly kind: Kind
  readonly wants: (object: AnyObject) => boolean
  /** Events after this version are sent. */
  readonly version: number
  /** Time after which the API ends it. */
  readonly endsAfterMs: number
}

const BOOKMARK_MS = 60_000
/** Time between two checks of a watch that the API responds. */
const LOOK_MS = 1_000

/** A watch: it sends events in lines, loses, repeats and delays some, and breaks when the API is down. */
export class EventStream {
  readonly #parts: StreamParts
  readonly #lines: string[] = []
  #end: { readonly error: KubernetesError | null } | null = null
  #wake: () => void = () => {}

  constructor(parts: StreamParts) {
    this.#parts = parts
  }

  /** Begins with what has happened since the version. */
  open(signal: AbortSignal | undefined): ByteStream {
    const { objects, life, version, endsAfterMs } = this.#parts
    life.after(endsAfterMs, () => this.#finish(null))
    for (const event of objects.since(version)) this.#happened(event)
    const unwatch = objects.watch(event => this.#happened(event))
    const forget = life.onEnd(() => this.#finish(null))
    const stop = () => {
      unwatch()
      forget()
      this.#finish(null)
    }
    signal?.addEventListener('abort', () => {
      unwatch()
      forget()
      this.#finish(new KubernetesError('aborted', null))
    })
    this.#bookmark()
    this.#look()
    return Object.assign(this.#read(), { destroy: stop })
  }

  #happened(event: ObjectEvent): void {
    const { world, kind, wants, random, faults, life } = this.#parts
    if (event.kind !== kind || !wants(event.object) || this.#end !== null) return
    const { forgotten, repeated, late, expired } = faults()
    if (random.chance(expired)) {
      world.count('kubernetes: watches that expired')
      const object = { code: 410, reason: 'Expired', message: 'too old resource version' }
      this.#send({ type: 'ERROR', object })
      this.#finish(null)
      return
    }
    if (random.chance(forgotten)) {
      world.count('kubernetes: forgotten events')
      return
    }
    const isLate = random.chance(late)
    if (isLate) world.count('kubernetes: late events')
    const send = () => this.#send({ type: event.type, object: event.object })
    life.after(isLate ? random.int(50, 5_000) : random.int(1, 30), send)
    if (!random.chance(repeated)) return
    world.count('kubernetes: repeated events')
    life.after(random.int(1, 3_000), send)
  }

  #bookmark(): void {
    this.#parts.life.after(BOOKMARK_MS, () => {
      if (this.#end !== null) return
      const { objects } = this.#parts
      this.#send({ type: 'BOOKMARK', object: { metadata: { resourceVersion: String(objects.version) } } })
      this.#bookmark()
    })
  }

  #look(): void {
    this.#parts.life.after(LOOK_MS, () => {
      if (this.#end !== null) return
      if (this.#parts.isAway()) this.#finish(new KubernetesError('socket hang up', null))
      else this.#look()
    })
  }

  #send(event: object): void {
    if (this.#end !== null) return
    this.#parts.world.activity += 1
    this.#lines.push(`${JSON.stringify(event)}\n`)
    this.#wake()
  }

  #finish(error: KubernetesError | null): void {
    this.#end ??= { error }
    this.#wake()
  }

  async *#read(): AsyncGenerator<Uint8Array> {
    const { life } = this.#parts
    for (;;) {
      const line = this.#lines.shift()
      if (line !== undefined) yield await life.guard(Promise.resolve(Buffer.from(line)))
      else if (this.#end !== null) {
        if (this.#end.error !== null) throw this.#end.error
        return
      } else {
        await new Promise<void>(resolve => {
          this.#wake = resolve
        })
      }
    }
  }
}
