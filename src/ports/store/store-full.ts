/** A store whose disk has no room, which refuses changes until it has. */
import { AppError } from '../../core/errors.ts'

/** Error that callers of the store get when a change finds no room. */
export class StoreFull extends AppError {
  /** Such as `its disk is full`. */
  readonly reason: string

  constructor(reason: string, cause?: unknown) {
    super('unavailable', `the store cannot do this now: ${reason}`, { cause })
    this.reason = reason
  }
}

/** A store that refuses changes now. */
export interface FullStore {
  readonly reason: string
  /** Unix milliseconds of the first change that was refused. */
  readonly sinceMs: number
}

/** Refusals of changes by the store because its disk is full. */
export interface StoreRoom {
  /** Null while it takes changes. */
  full(): FullStore | null
}
