/** Damage of the database itself, which no retry fixes. */
import { AppError } from '../../core/errors.ts'
import { DAMAGE_ACTION, type DamageReport, damageText } from '../../core/observing/store-damage.ts'

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
