import {
  type ByteStream,
  type KubernetesApi,
  type KubernetesCall,
  KubernetesError,
} from '../../src/drivers/kubernetes/api.ts'
import type { Life } from '../life.ts'
import type { SeededRandom } from '../random.ts'
import type { World } from '../world.ts'
import type { ApiFaults } from './api-faults.ts'
import { EventStream } from './event-stream.ts'
import { type AnyObject, type AnyPod, isSelected, type Kind, type Objects } from './objects.ts'

/** The API server of the simulated cluster, as one process of a server reaches it. */
export interface ApiParts {
  readonly world: World
  readonly objects: Objects
  readonly life: Life
  readonly random: SeededRandom
  readonly faults: () => ApiFaults
  /** True if the API does not respond. */
  readonly isAway: () => boolean
  /** Stops a pod. @returns false if it is removed at once */
  readonly end: (pod: AnyPod, graceS: number) => boolean
}

interface DeleteOptions {
  readonly gracePeriodSeconds?: number
  readonly preconditions?: { readonly uid?: string }
}

/** Time after which a call that nobody answers fails. */
const DEADLINE_MS = 4_000
const PAGE = 5

/** Answers the calls of one process. */
export class SimApi implements KubernetesApi {
  readonly #parts: ApiParts
  readonly #pages = new Map<string, { readonly rest: readonly AnyObject[]; readonly version: number }>()

  constructor(parts: ApiParts) {
    this.#parts = parts
  }

  async call<Result>(call: KubernetesCall): Promise<Result> {
    const { world, life, random, faults, isAway } = this.#parts
    world.activity += 1
    // A sent request also arrives if its process is paused or has ended.
    await new Promise<void>(resolve => world.clock.after(random.int(1, 30), resolve))
    this.#failEarly(call)
    if (isAway()) {
      await life.sleep(random.chance(0.5) ? DEADLINE_MS : 1)
      throw new KubernetesError('connect ECONNREFUSED', null)
    }
    const answer = this.#answer(call) as Result
    world.trace.add('kubernetes', `${call.method} ${call.path}`)
    await life.sleep(random.int(1, 30))
    if (random.chance(faults().lostAnswer)) {
      world.count('kubernetes: lost answers')
      await life.sleep(random.chance(0.5) ? DEADLINE_MS : 1)
      throw new KubernetesError('socket hang up', null)
    }
    return answer
  }

  async stream(call: KubernetesCall): Promise<ByteStream> {
    const { world, life, random, faults, isAway, objects } = this.#parts
    world.activity += 1
    await life.sleep(random.int(1, 30))
    this.#failEarly(call)
    if (isAway()) throw new KubernetesError('connect ECONNREFUSED', null)
    const { kind } = readPath(call)
    const { resourceVersion = '', labelSelector = '', timeoutSeconds = '1800' } = call.query ?? {}
    const endsAfterMs = Number(timeoutSeconds) * 1_000
    const version = Number(resourceVersion) || objects.version
    if (version < objects.oldest) {
      world.count('kubernetes: versions that are too old')
      throw new KubernetesError('too old resource version', 410, { reason: 'Expired' })
    }
    const wants = (object: AnyObject) => isSelected(labelSelector, object)
    const stream = new EventStream({ world, objects, life, random, faults, isAway, kind, wants, version, endsAfterMs })
    return stream.open(call.signal)
  }

  #failEarly({ signal, method }: KubernetesCall): void {
    const { world, random, faults } = this.#parts
    if (signal?.aborted === true) throw new KubernetesError('aborted', null)
    if (!random.chance(faults().refused)) return
    const status = random.pick(method === 'GET' ? [429, 500, 503] : [429, 500, 503, 504])
    world.count(`kubernetes: failed calls (${status})`)
    const extras = status === 429 ? { reason: 'TooManyRequests', retryAfterMs: random.int(1, 5) * 1_000 } : {}
    throw new KubernetesError(`the API says ${status}`, status, extras)
  }

  #answer(call: KubernetesCall): object {
    const { objects } = this.#parts
    const { kind, name } = readPath(call)
    const { method, body } = call
    if (method === 'GET') return name === '' ? this.#list(kind, call) : this.#find(kind, name)
    if (method === 'DELETE') return this.#delete(kind, name, (body ?? {}) as DeleteOptions)
    if (method === 'PUT') return objects.put(kind, body as AnyObject)
    if (method === 'PATCH') {
      const object = this.#find(kind, name)
      const { metadata } = body as { metadata: object }
      return objects.put(kind, { ...object, metadata: { ...object.metadata, ...metadata } })
    }
    const object = body as AnyObject
    if (objects.find(kind, object.metadata.name) !== undefined)
      throw new KubernetesError('already exists', 409, { reason: 'AlreadyExists' })
    return objects.put(kind, object)
  }

  #find(kind: Kind, name: string): AnyObject {
    const object = this.#parts.objects.find(kind, name)
    if (object === undefined) throw new KubernetesError(`${kind} "${name}" not found`, 404, { reason: 'NotFound' })
    return object
  }

  #delete(kind: Kind, name: string, { gracePeriodSeconds = 30, preconditions }: DeleteOptions): object {
    const object = this.#find(kind, name)
    if (preconditions?.uid !== undefined && preconditions.uid !== object.metadata.uid)
      throw new KubernetesError('the uid is another one', 409, { reason: 'Conflict' })
    if (kind !== 'pods' || !this.#parts.end(object as AnyPod, gracePeriodSeconds))
      this.#parts.objects.remove(kind, name)
    return object
  }

  /** Pages are small, so that lists have several. All pages of a list are of one instant. */
  #list(kind: Kind, { query = {} }: KubernetesCall): object {
    const { objects } = this.#parts
    const { labelSelector = '', continue: token = '' } = query
    const page = this.#pages.get(token) ?? {
      rest: objects.all(kind).filter(object => isSelected(labelSelector, object)),
      version: objects.version,
    }
    if (token !== '' && page.version < objects.oldest)
      throw new KubernetesError('the continue token is too old', 410, { reason: 'Expired' })
    const size = Math.min(PAGE, Number(query.limit ?? PAGE))
    const rest = page.rest.slice(size)
    const next = rest.length === 0 ? '' : `${page.version}-${this.#pages.size + 1}`
    if (next !== '') this.#pages.set(next, { rest, version: page.version })
    return { metadata: { resourceVersion: String(page.version), continue: next }, items: page.rest.slice(0, size) }
  }
}

function readPath({ path }: KubernetesCall): { kind: Kind; name: string } {
  const [, kind = '', name = ''] = /\/(pods|secrets|events)(?:\/([^/]+))?/.exec(path) ?? []
  if (kind === '') throw new KubernetesError(`${path} is not allowed`, 403, { reason: 'Forbidden' })
  return { kind: kind as Kind, name }
}
