/** Sentences about a damaged database, and about a full disk of the store. */
import type { Explanation } from './explanation.ts'
import { machine, run } from './fix-actions.ts'

/** The remedy for damage of the database, as the end of a sentence. */
export const DAMAGE_ACTION = 'stop the server, examine it with runyard check, and restore a backup'

/** The remedy for a full disk, as the end of a sentence. */
const FULL_ACTION = 'make room on the disk of the database; all work then continues'

/** Damage that the server met: the damaged part, the message of the database, and the time. */
export interface DamageReport {
  /** Such as `the database file runyard.sqlite`. */
  readonly where: string
  /** Such as `database disk image is malformed`. */
  readonly databaseMessage: string
  /** Unix milliseconds of the first time. */
  readonly sinceMs: number
}

/** The damage as a sentence without a full stop. */
export function damageText({ where, databaseMessage }: Pick<DamageReport, 'where' | 'databaseMessage'>): string {
  return `${where} is damaged (${databaseMessage})`
}

/**
 * An explanation whose cause is the damage, if the server met damage: the rest of the explanation may come from
 * incomplete data. A finished job stays finished.
 */
export function withDamage(explanation: Explanation, damage: DamageReport | null): Explanation {
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

/**
 * An explanation whose cause is that the store refuses changes: jobs are neither accepted nor taken, and no worker
 * starts. A finished job stays finished.
 * @param full the reason, such as `its disk is full`, and the start in Unix milliseconds; null while the store takes
 * changes
 */
export function withFullStore(
  explanation: Explanation,
  full: { readonly reason: string; readonly sinceMs: number } | null,
): Explanation {
  if (full === null || explanation.cause === 'finished' || explanation.cause === 'store_damaged') return explanation
  return {
    ...explanation,
    cause: 'store_full',
    summary: `${fullText(full)}; ${explanation.summary}`,
    advice: FULL_ACTION,
    actions: [machine('See the disk of the machine')],
    sinceMs: full.sinceMs,
  }
}

/** The refusals as a sentence without a full stop. */
export function fullText({ reason }: { readonly reason: string }): string {
  return `the store takes no change now: ${reason}`
}
