import type { KubernetesObject, PodObject } from '../../src/drivers/kubernetes/api.ts'
import { EPOCH_MS } from '../clock.ts'

/** The kinds of objects that the simulated cluster keeps. */
export type Kind = 'pods' | 'secrets' | 'events'

/** An object with all that was sent. */
export type AnyObject = KubernetesObject & Readonly<Record<string, unknown>>

/** A pod with all that was sent. */
export type AnyPod = PodObject & Readonly<Record<string, unknown>>

/** Something that happened to an object. */
export interface ObjectEvent {
  readonly version: number
  readonly kind: Kind
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly object: AnyObject
}

/** The objects of a cluster, and what happened to them. Nothing goes wrong here. */
export class Objects {
  readonly #objects = new Map<string, AnyObject>()
  readonly #nowMs: () => number
  readonly #watchers = new Set<(event: ObjectEvent) => void>()
  #version = 100
  #history: ObjectEvent[] = []
  #oldest = 100

  /** @param nowMs the clock of the cluster */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  /** The version of the last change. */
  get version(): number {
    return this.#version
  }

  /** Oldest version whose later events are kept. */
  get oldest(): number {
    return this.#oldest
  }

  /** Events after a version. */
  since(version: number): readonly ObjectEvent[] {
    return this.#history.filter(event => event.version > version)
  }

  /** Forgets what happened so far. */
  compact(): void {
    this.#history = []
    this.#oldest = this.#version
  }

  /** Objects of a kind. */
  all(kind: Kind): AnyObject[] {
    return [...this.#objects].flatMap(([key, object]) => (key.startsWith(`${kind}/`) ? [object] : []))
  }

  /** The pods. */
  pods(): AnyPod[] {
    return this.all('pods') as AnyPod[]
  }

  /** An object, if it exists. */
  find(kind: Kind, name: string): AnyObject | undefined {
    return this.#objects.get(`${kind}/${name}`)
  }

  /** Puts an object there, or in place of the one of that name. */
  put(kind: Kind, object: AnyObject): AnyObject {
    const key = `${kind}/${object.metadata.name}`
    const previousObject = this.#objects.get(key)
    this.#version += 1
    const metadata = {
      uid: `uid-${this.#version}`,
      creationTimestamp: new Date(this.#nowMs()).toISOString(),
      ...previousObject?.metadata,
      ...object.metadata,
      resourceVersion: String(this.#version),
    }
    const storedObject = { ...object, metadata }
    this.#objects.set(key, storedObject)
    this.#publish(kind, previousObject === undefined ? 'ADDED' : 'MODIFIED', storedObject)
    return storedObject
  }

  /** Removes an object, and what it owns. */
  remove(kind: Kind, name: string): void {
    const key = `${kind}/${name}`
    const previousObject = this.#objects.get(key)
    if (previousObject === undefined) return
    this.#version += 1
    this.#objects.delete(key)
    this.#publish(kind, 'DELETED', {
      ...previousObject,
      metadata: { ...previousObject.metadata, resourceVersion: String(this.#version) },
    })
    for (const owned of this.all('secrets')) {
      if (ownerUids(owned).includes(previousObject.metadata.uid ?? '')) this.remove('secrets', owned.metadata.name)
    }
  }

  /** Calls `watcher` at each change. @returns removes it */
  watch(watcher: (event: ObjectEvent) => void): () => void {
    this.#watchers.add(watcher)
    return () => void this.#watchers.delete(watcher)
  }

  #publish(kind: Kind, type: ObjectEvent['type'], object: AnyObject): void {
    const event = { version: this.#version, kind, type, object }
    this.#history.push(event)
    for (const watcher of [...this.#watchers]) watcher(event)
  }
}

/** True if a selector such as `a=b,c=d` selects an object. */
export function isSelected(selector: string, { metadata }: AnyObject): boolean {
  return selector
    .split(',')
    .filter(text => text !== '')
    .every(text => {
      const [name = '', value] = text.split('=')
      return metadata.labels?.[name] === value
    })
}

/** An instant of the cluster's clock, as its objects have it. */
export function timestamp(sinceStartMs: number): string {
  return new Date(EPOCH_MS + sinceStartMs).toISOString()
}

function ownerUids({ metadata }: AnyObject): string[] {
  const { ownerReferences = [] } = metadata as { readonly ownerReferences?: readonly { readonly uid: string }[] }
  return ownerReferences.map(({ uid }) => uid)
}
