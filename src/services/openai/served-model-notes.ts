import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import type { EndpointId } from '../../core/ids.ts'
import type { ServedModels } from '../../core/openai/model-names.ts'
import type { Ports } from '../../ports/ports.ts'

/** Time for which models of an endpoint without ready workers are remembered, in milliseconds. */
const REMEMBERED_MS = 7 * 24 * 3_600_000
/** Limit of endpoints in memory. */
const MAX_NOTES = 10_000
/** Time for which a note is used without a read, in milliseconds: another server may have stored a newer one. */
const FRESH_MS = 60_000
/** Shortest time between two writes of an endpoint, and the age at which a note with the same models is renewed. */
const WRITING = { everyMs: 60_000, renewedMs: 6 * 3_600_000 } as const

interface Note {
  /** The newest that is known. */
  said: ServedModels | null
  /** The row of the store, as far as this server knows. */
  stored: ServedModels | null
  /** The last read with its begin; null without one, or after one that failed. */
  read: { readonly atMs: number; readonly done: Promise<void> } | null
  /** Begin of the last write; null without one. */
  writtenMs: number | null
}

/**
 * The models that workers said they serve, by endpoint: read from memory, which {@link recall} fills from the store.
 * Each change is stored, so that a restart of the server forgets nothing.
 */
export class ServedModelNotes {
  readonly #ports
  readonly #notes = new Map<EndpointId, Note>()

  constructor(ports: Pick<Ports, 'clock' | 'store'>) {
    this.#ports = ports
  }

  /** Reads the notes of endpoints that memory lacks, all at once. Never rejects: after a failure memory is used. */
  async recall(ids: readonly EndpointId[]): Promise<void> {
    const nowMs = this.#ports.clock.monotonic()
    const isFresh = ({ read }: Note) => read !== null && nowMs - read.atMs < FRESH_MS
    const due = ids.filter(id => {
      const note = this.#notes.get(id)
      return note === undefined || !isFresh(note)
    })
    if (due.length > 0) this.#read(due, nowMs)
    await Promise.all(new Set(ids.map(id => this.#notes.get(id)?.read?.done)))
  }

  /** The remembered models of an endpoint; empty where none are. */
  models(id: EndpointId): readonly string[] {
    return this.#said(id)?.models ?? []
  }

  /** True if the remembered models are those of the present release. */
  arePresent({ id, version }: Pick<Endpoint, 'id' | 'version'>): boolean {
    return this.#said(id)?.version === version
  }

  /** Notes what a worker said. Stores it in the background where the models have changed. */
  keep(endpointId: EndpointId, version: number, models: readonly string[]): void {
    const note = this.#note(endpointId)
    note.said = { endpointId, version, models, saidAtMs: this.#ports.clock.now() }
    void this.#store(note, note.said)
  }

  #said(id: EndpointId): ServedModels | null {
    const said = this.#notes.get(id)?.said ?? null
    return said === null || this.#ports.clock.now() - said.saidAtMs > REMEMBERED_MS ? null : said
  }

  #note(id: EndpointId): Note {
    const present = this.#notes.get(id)
    if (present !== undefined) return present
    if (this.#notes.size >= MAX_NOTES) this.#notes.clear()
    const note = { said: null, stored: null, read: null, writtenMs: null }
    this.#notes.set(id, note)
    return note
  }

  #read(ids: readonly EndpointId[], atMs: number): void {
    const notes = new Map(ids.map(id => [id, this.#note(id)]))
    const took = (rows: readonly ServedModels[]) => {
      const byId = new Map(rows.map(row => [row.endpointId, row]))
      for (const [id, note] of notes) takeOver(note, byId.get(id) ?? null)
    }
    const failed = () => {
      for (const note of notes.values()) note.read = null
    }
    const done = this.#ports.store.servedModels.of(ids).then(took, failed)
    for (const note of notes.values()) note.read = { atMs, done }
  }

  async #store(note: Note, said: ServedModels): Promise<void> {
    const { clock, store } = this.#ports
    const nowMs = clock.monotonic()
    if (isStored(note.stored, said)) return
    if (note.writtenMs !== null && nowMs - note.writtenMs < WRITING.everyMs) return
    note.writtenMs = nowMs
    await store.servedModels.save(said).then(
      () => {
        note.stored = said
      },
      () => {},
    )
  }
}

function takeOver(note: Note, row: ServedModels | null): void {
  note.stored = row
  if (row !== null && (note.said === null || note.said.saidAtMs < row.saidAtMs)) note.said = row
}

/** True if a write would change nothing but a recent instant. */
function isStored(stored: ServedModels | null, { version, models, saidAtMs }: ServedModels): boolean {
  if (stored?.version !== version || Math.abs(saidAtMs - stored.saidAtMs) >= WRITING.renewedMs) return false
  return stored.models.length === models.length && models.every((model, at) => model === stored.models[at])
}
