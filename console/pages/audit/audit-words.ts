/** Entries of the audit log in words. */

/** A change of a field, without anything that may be secret. */
export interface Change {
  readonly field: string
  readonly from?: unknown
  readonly to?: unknown
  /** True, or the names of the changed variables. */
  readonly changed?: unknown
  readonly added?: unknown
  readonly removed?: unknown
}

/** The surfaces, with titles. */
export const SURFACES: readonly (readonly [string, string])[] = [
  ['rest', 'REST'],
  ['restV1', 'REST v1'],
  ['graphql', 'GraphQL'],
  ['jobs', 'Job operations'],
  ['ops', 'Command line'],
  ['console', 'Console'],
  ['server', 'The server'],
]

/** The values of a change; of a secret, and of variables, that they changed. */
export function changedValues({ from, to, changed, added, removed }: Change): string {
  if (from !== undefined || to !== undefined) return `${valueText(from)} → ${valueText(to)}`
  if (changed === true) return 'changed; its value may be secret'
  const named = (word: string, names: unknown) =>
    Array.isArray(names) && names.length > 0 ? [`${word} ${names.join(', ')}`] : []
  return [...named('added', added), ...named('removed', removed), ...named('changed', changed)].join('; ')
}

/** A value as a text. */
export function valueText(value: unknown): string {
  if (value === null || value === undefined || value === '') return '–'
  if (Array.isArray(value) && value.every(one => typeof one === 'string')) return value.join(', ') || '–'
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
