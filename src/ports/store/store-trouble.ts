/** A damaged database, which no retry fixes, and a full disk, which refuses changes until it has room. */
import { AppError } from '../../core/errors.ts'
import { DAMAGE_ACTION, type DamageReport, damageText } from '../../core/observing/store-trouble.ts'

/** Error that callers of the store get when the database is damaged. */
export class StoreDamaged extends AppError {
  /** The damaged thing, such as `the database file runyard.sqlite`. */
  readonly where: string
  /** Words of the database, such as `database disk image is malformed`. */
  readonly databaseMessage: string

  constructor(where: string, said: string, cause?: unknown) {
    super(
      'unavailable',
      `the store cannot do this: ${damageText({ where, databaseMessage: said })}; ${DAMAGE_ACTION}`,
      { cause },
    )
    this.where = where
    this.databaseMessage = said
  }
}

/** Damage that the store has met since the server began to act. */
export interface StoreDamage {
  /** The first damage; null while none was met. It stays until the server ends. */
  met(): DamageReport | null
}

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
