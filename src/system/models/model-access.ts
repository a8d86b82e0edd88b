/** Rights to read the models of a cache: everyone, or the accounts whose token the hub accepted for the model. */
import { createHash } from 'node:crypto'
import type { ModelReader } from '../../ports/model-cache.ts'
import type { ModelFolders } from './model-folders.ts'

/** Time for which an answer of the hub about a token counts while the hub can be asked. */
const FRESH_MS = 24 * 60 * 60_000
/** Limit of accounts whose right to one model is remembered, those of the latest answers. */
const MAX_GRANTS = 1_000

/** An account that may read a model. */
interface Grant {
  readonly owner: string
  /** SHA-256 of the account and its token: the hub has to check another token first. */
  readonly token: string
  readonly atMs: number
}

/** Note about a model beside its files. */
interface ModelNote {
  /** Null until the hub was asked. */
  readonly isRestricted: boolean | null
  readonly grants: readonly Grant[]
  /** Time of the last use of each commit. */
  readonly usedAtMs: Readonly<Record<string, number>>
}

/** Reads and writes the notes of models. */
export class ModelAccess {
  readonly #folders
  readonly #now

  constructor(folders: ModelFolders, now: () => number) {
    this.#folders = folders
    this.#now = now
  }

  /** True if only some accounts may read a model, or that is unknown. */
  isRestricted(model: string): boolean {
    return this.#note(model).isRestricted !== false
  }

  /**
   * True if an account may read a model, by an earlier answer of the hub.
   * @param age `fresh` when the hub can be asked again, `any` when it cannot be reached
   */
  mayRead(model: string, reader: ModelReader, age: 'fresh' | 'any'): boolean {
    const { isRestricted, grants } = this.#note(model)
    if (isRestricted === false) return true
    if (isRestricted === null || reader.token === null) return false
    const grant = grants.find(({ owner }) => owner === reader.owner)
    if (grant === undefined || grant.token !== digest(reader)) return false
    return age === 'any' || this.#now() - grant.atMs < FRESH_MS
  }

  /** Records that the hub lets an account read a model. @param token its token; null when none is needed */
  allow(model: string, { owner }: ModelReader, token: string | null): void {
    const note = this.#note(model)
    if (token === null) {
      this.#write(model, { ...note, isRestricted: false, grants: [] })
      return
    }
    const otherGrants = note.grants.filter(grant => grant.owner !== owner).slice(-(MAX_GRANTS - 1))
    const grants = [...otherGrants, { owner, token: digest({ owner, token }), atMs: this.#now() }]
    this.#write(model, { ...note, isRestricted: true, grants })
  }

  /** Removes the right of an account to a model, after a refusal of the hub. */
  refuse(model: string, { owner }: ModelReader): void {
    const note = this.#note(model)
    const grants = note.grants.filter(grant => grant.owner !== owner)
    if (grants.length < note.grants.length) this.#write(model, { ...note, grants })
  }

  /** Time of the last use of a commit; 0 for an unknown one. */
  usedAtMs(model: string, commit: string): number {
    return this.#note(model).usedAtMs[commit] ?? 0
  }

  /** Records a use of a commit. */
  used(model: string, commit: string): void {
    const note = this.#note(model)
    const commits = this.#folders.commits(model)
    const others = Object.entries(note.usedAtMs).filter(([snapshot]) => commits.includes(snapshot))
    this.#write(model, { ...note, usedAtMs: { ...Object.fromEntries(others), [commit]: this.#now() } })
  }

  #note(model: string): ModelNote {
    const {
      isRestricted = null,
      grants = [],
      usedAtMs = {},
    } = (this.#folders.readNote(model) ?? {}) as Partial<ModelNote>
    return { isRestricted, grants, usedAtMs }
  }

  #write(model: string, note: ModelNote): void {
    this.#folders.writeNote(model, note)
  }
}

function digest({ owner, token }: ModelReader): string {
  return createHash('sha256').update(`${owner}\0${token}`).digest('hex')
}
