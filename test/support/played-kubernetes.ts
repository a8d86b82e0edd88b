/**
 * A Kubernetes in memory: it stores objects, reports their changes, and fails as a test orders. Pods
 * do what a test does to them.
 */
import {
  type ByteStream,
  type KubernetesApi,
  type KubernetesCall,
  KubernetesError,
  type KubernetesObject,
  type PodObject,
} from '../../src/drivers/kubernetes/api.ts'

/** An object of any kind with all that was sent. */
export type AnyObject = KubernetesObject & Record<string, unknown>

interface Watcher {
  readonly kind: string
  readonly wants: (object: AnyObject) => boolean
  readonly send: (line: string) => void
  readonly end: (error: KubernetesError | null) => void
}

interface DeleteOptions {
  readonly gracePeriodSeconds?: number
  readonly preconditions?: { readonly uid?: string }
}

/** The API of a cluster that exists in a test alone. */
export class PlayedKubernetes implements KubernetesApi {
  /** All calls, as `POST pods`, in order. */
  readonly calls: string[] = []
  readonly asked: KubernetesCall[] = []
  /** Error of a call; null for success. */
  failure: (call: KubernetesCall) => KubernetesError | null = () => null
  /** True if watches receive nothing, as if events were lost. */
  isMute = false
  /** Objects on a page of a list. */
  pageSize = 500
  /** The output of pods by their names, as the API gives it, with times. */
  readonly output = new Map<string, string>()
  readonly #objects = new Map<string, AnyObject>()
  readonly #watchers = new Set<Watcher>()
  readonly #pages = new Map<string, { rest: AnyObject[]; version: string }>()
  #version = 100

  /** Objects of a kind by their names. */
  all(kind: string): AnyObject[] {
    return [...this.#objects].flatMap(([key, object]) => (key.startsWith(`${kind}/`) ? [object] : []))
  }

  /** An object, if it exists. */
  find(kind: string, name: string): AnyObject | undefined {
    return this.#objects.get(`${kind}/${name}`)
  }

  /** Puts an object there as somebody else does, or in place of the one of that name. */
  put(kind: string, object: AnyObject): AnyObject {
    const { name } = object.metadata
    const previous = this.find(kind, name)
    this.#version += 1
    const metadata = {
      uid: `uid-${this.#version}`,
      creationTimestamp: new Date(1_800_000_000_000).toISOString(),
      ...previous?.metadata,
      ...object.metadata,
      resourceVersion: String(this.#version),
    }
    const stored = { ...object, metadata }
    this.#objects.set(`${kind}/${name}`, stored)
    this.#tell(kind, previous === undefined ? 'ADDED' : 'MODIFIED', stored)
    return stored
  }

  /** Changes the pod of that name. */
  change(name: string, change: (pod: PodObject & Record<string, unknown>) => object): PodObject {
    const pod = this.find('pods', name)
    if (pod === undefined) throw new Error(`no pod ${name}`)
    return this.put('pods', { ...pod, ...change(pod as PodObject & Record<string, unknown>) } as AnyObject) as PodObject
  }

  /** Gives a pod a node, and says what its container does. */
  status(name: string, state: object, status: object = {}, node = 'node-1'): PodObject {
    return this.change(name, ({ spec }) => ({
      spec: { ...spec, nodeName: node },
      status: { phase: 'Running', podIP: '10.1.0.7', containerStatuses: [{ name: 'worker', state }], ...status },
    }))
  }

  /** The container of a pod runs. */
  run(name: string, node = 'node-1'): void {
    this.status(name, { running: {} }, {}, node)
  }

  /** Ends the container of a pod. A pod that is being deleted is removed with it. */
  end(name: string, terminated: object, status: object = {}): void {
    const { metadata } = this.status(name, { terminated }, { phase: 'Failed', ...status })
    if (metadata.deletionTimestamp !== undefined) this.remove('pods', name)
  }

  /** Removes an object as its node or somebody else does. */
  remove(kind: string, name: string): void {
    const object = this.find(kind, name)
    if (object === undefined) return
    this.#version += 1
    this.#objects.delete(`${kind}/${name}`)
    this.#tell(kind, 'DELETED', {
      ...object,
      metadata: { ...object.metadata, resourceVersion: String(this.#version) },
    })
  }

  /** Sends a line to all watches of a kind. */
  tell(kind: string, event: object): void {
    for (const watcher of this.#watchers) if (watcher.kind === kind) watcher.send(`${JSON.stringify(event)}\n`)
  }

  /** Ends all watches, with an error or as the API does from time to time. */
  endWatches(error: KubernetesError | null = null): void {
    for (const watcher of [...this.#watchers]) watcher.end(error)
  }

  /** Number of open watches. */
  get watches(): number {
    return this.#watchers.size
  }

  async call<Result>(call: KubernetesCall): Promise<Result> {
    const { kind, name } = this.#note(call)
    switch (call.method) {
      case 'POST':
        return this.#create(kind, call.body as AnyObject) as Result
      case 'PUT':
        return this.put(kind, call.body as AnyObject) as Result
      case 'PATCH':
        return this.#patch(kind, name, call.body as { metadata: object }) as Result
      case 'DELETE':
        return this.#delete(kind, name, call.body as DeleteOptions) as Result
      case 'GET':
        return (name === '' ? this.#list(kind, call) : this.#get(kind, name)) as Result
    }
  }

  async stream(call: KubernetesCall): Promise<ByteStream> {
    const { kind, name } = this.#note(call)
    if (call.path.endsWith('/log')) return bytes(this.output.get(name) ?? '')
    const lines: string[] = []
    let ended: { error: KubernetesError | null } | null = null
    let wake = () => {}
    const end = (error: KubernetesError | null) => {
      ended ??= { error }
      this.#watchers.delete(watcher)
      wake()
    }
    const send = (line: string) => {
      lines.push(line)
      wake()
    }
    const watcher: Watcher = { kind, wants: wanted(call), send, end }
    this.#watchers.add(watcher)
    call.signal?.addEventListener('abort', () => end(new KubernetesError('aborted', null)))
    async function* read() {
      for (;;) {
        const line = lines.shift()
        if (line !== undefined) yield Buffer.from(line)
        else if (ended !== null) {
          if (ended.error !== null) throw ended.error
          return
        } else {
          await new Promise<void>(resolve => {
            wake = resolve
          })
        }
      }
    }
    return Object.assign(read(), { destroy: () => end(null) })
  }

  #note(call: KubernetesCall): { kind: string; name: string } {
    const [, kind = '', name = ''] = /\/(pods|secrets|events|nodes|networkpolicies)(?:\/([^/]+))?/.exec(call.path) ?? []
    this.calls.push(`${call.method} ${kind}${call.query?.watch === 'true' ? ' watch' : ''}`)
    this.asked.push(call)
    if (call.signal?.aborted === true) throw new KubernetesError('aborted', null)
    const failure = this.failure(call)
    if (failure !== null) throw failure
    return { kind, name }
  }

  #create(kind: string, object: AnyObject): AnyObject {
    if (this.find(kind, object.metadata.name) !== undefined) {
      throw new KubernetesError('already exists', 409, { reason: 'AlreadyExists' })
    }
    return this.put(kind, object)
  }

  #get(kind: string, name: string): AnyObject {
    const object = this.find(kind, name)
    if (object === undefined) throw new KubernetesError(`${kind} "${name}" not found`, 404, { reason: 'NotFound' })
    return object
  }

  #patch(kind: string, name: string, patch: { metadata: object }): AnyObject {
    const object = this.#get(kind, name)
    return this.put(kind, { ...object, metadata: { ...object.metadata, ...patch.metadata } })
  }

  /** A pod with a node gets a stop signal and stays until its node ended it; other objects are removed at once. */
  #delete(kind: string, name: string, { gracePeriodSeconds = 30, preconditions }: DeleteOptions): AnyObject {
    const object = this.#get(kind, name)
    if (preconditions?.uid !== undefined && preconditions.uid !== object.metadata.uid) {
      throw new KubernetesError('the uid is another one', 409, { reason: 'Conflict' })
    }
    const pod = object as PodObject
    const hasEnded = pod.status?.phase === 'Failed' || pod.status?.phase === 'Succeeded'
    if (kind !== 'pods' || pod.spec?.nodeName === undefined || hasEnded || gracePeriodSeconds === 0) {
      this.remove(kind, name)
      return object
    }
    const metadata = {
      ...object.metadata,
      deletionTimestamp: new Date(1_800_000_000_000).toISOString(),
      deletionGracePeriodSeconds: gracePeriodSeconds,
    }
    return this.put(kind, { ...object, metadata })
  }

  #list(kind: string, call: KubernetesCall) {
    const { query = {} } = call
    const page = this.#pages.get(query.continue ?? '') ?? {
      rest: this.all(kind).filter(wanted(call)),
      version: String(this.#version),
    }
    const limit = Math.min(Number(query.limit ?? this.pageSize), this.pageSize)
    const items = page.rest.slice(0, limit)
    const rest = page.rest.slice(limit)
    const next = rest.length === 0 ? '' : `page-${this.#pages.size}`
    if (next !== '') this.#pages.set(next, { rest, version: page.version })
    return { metadata: { resourceVersion: page.version, continue: next }, items }
  }

  #tell(kind: string, type: string, object: AnyObject): void {
    if (this.isMute) return
    for (const watcher of this.#watchers) {
      if (watcher.kind === kind && watcher.wants(object)) watcher.send(`${JSON.stringify({ type, object })}\n`)
    }
  }
}

/** A pod as a cluster has it right after it was made. */
export function podOf(manifest: object): AnyObject {
  return manifest as AnyObject
}

function wanted({ query }: KubernetesCall): (object: AnyObject) => boolean {
  const labels = (query?.labelSelector ?? '').split(',').filter(text => text !== '')
  return ({ metadata }) =>
    labels.every(text => {
      const [name = '', value] = text.split('=')
      return metadata.labels?.[name] === value
    })
}

function bytes(text: string): ByteStream {
  async function* read() {
    for (let at = 0; at < text.length; at += 7) yield Buffer.from(text.slice(at, at + 7))
  }
  return Object.assign(read(), { destroy: () => {} })
}
