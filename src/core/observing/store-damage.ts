/** Words for people about a database that is damaged. */
import type { Explanation } from './explanation.ts'
import { machine, run } from './fix-actions.ts'

/** The remedy for damage of the database, as the end of a sentence. */
export const DAMAGE_ACTION = 'stop the server, look with runyard check, and restore a backup'

/** Damage that was met: the damaged thing, what the database says of it, and since when. */
export interface MetDamage {
  /** Such as `the database file runyard.sqlite`. */
  readonly where: string
  /** Such as `database disk image is malformed`. */
  readonly said: string
  /** Unix milliseconds of the first time. */
  readonly sinceMs: number
}

/** The damage as a sentence without a full stop. */
export function damageText({ where, said }: Pick<MetDamage, 'where' | 'said'>): string {
  return `${where} is damaged (${said})`
}

/** An explanation whose cause is the damage, where some was met: what else it says may come from what is left. A finished job stays finished. */
export function withDamage(explanation: Explanation, damage: MetDamage | null): Explanation {
  if (damage === null || explanation.cause === 'finished') return explanation
  return {
    ...explanation,
    cause: 'store_damaged',
    summary: `${damageText(damage)}; ${explanation.summary}`,
    advice: DAMAGE_ACTION,
    actions: [machine('See what is wrong with the machine'), run('Check the database', 'runyard', 'check')],
    sinceMs: damage.sinceMs,
  }
}
