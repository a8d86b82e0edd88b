/** Limits of a key on the models that it calls: as the draft of a form, and in words. */
import type { ApiKey } from '../../client/api-types.d.ts'
import { count } from '../../format.ts'

/** Names of the limits, with their titles. */
export const LIMITS = [
  ['requestsPerMinute', 'Requests a minute'],
  ['tokensPerMinute', 'Tokens a minute'],
  ['tokensPerDay', 'Tokens a day'],
] as const

type LimitName = (typeof LIMITS)[number][0]

/** Limits while they are edited: texts of numbers, empty for none. */
export type LimitsDraft = Readonly<Record<LimitName, string>>

/** The limits of a key for a form. @param limits of a key that exists */
export function draftFromLimits(limits?: ApiKey['limits']): LimitsDraft {
  const text = (name: LimitName) => String(limits?.[name] ?? '')
  return {
    requestsPerMinute: text('requestsPerMinute'),
    tokensPerMinute: text('tokensPerMinute'),
    tokensPerDay: text('tokensPerDay'),
  }
}

/** The limits that a form changes, null for one that it removes. */
export function changedLimits(draft: LimitsDraft, before: LimitsDraft): Readonly<Partial<ApiKey['limits']>> {
  const changed = LIMITS.map(([name]) => name).filter(name => draft[name].trim() !== before[name])
  return Object.fromEntries(changed.map(name => [name, draft[name].trim() === '' ? null : Number(draft[name])]))
}

/** Limits in words, such as `60 requests a minute, 2,000,000 tokens a day`. */
export function describeLimits(limits: ApiKey['limits']): string {
  const words = LIMITS.flatMap(([name, title]) => {
    const limit = limits[name]
    return limit === null ? [] : [`${count(limit)} ${title.toLowerCase()}`]
  })
  return words.length === 0 ? 'none' : words.join(', ')
}
