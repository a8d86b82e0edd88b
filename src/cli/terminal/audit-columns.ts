/** Entries of the audit log for people. */
import type { FieldChange, ShownValue } from '../../core/audit/field-change.ts'
import type { Column, TableRow } from './table.ts'

/** The columns of `runyard audit`. */
export const AUDIT_COLUMNS: readonly Column[] = [
  { title: 'NUMBER', text: row => String(row.sequence) },
  { title: 'TIME', text: row => String(row.at).slice(0, 19).replace('T', ' ') },
  { title: 'WHO', text: whoText },
  { title: 'OPERATION', text: row => String(row.operation) },
  { title: 'OBJECT', text: row => (row.object as { id: string } | null)?.id ?? '-' },
  { title: 'OUTCOME', text: row => String(row.outcome) },
  { title: 'WHAT', text: row => whatText(row) },
]

function whoText({ account, keyId, session, address, surface }: TableRow): string {
  if (keyId !== null) return `${account} ${String(keyId).slice(0, 8)}${session === true ? ' (console)' : ''}`
  return surface === 'server' && address === null ? 'server' : String(address ?? account)
}

/** Differences, facts, and the reason of a refusal, on one line. */
export function whatText({ changes, detail, problem }: TableRow): string {
  const facts = Object.entries((detail ?? {}) as Record<string, ShownValue>)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name} ${valueText(value)}`)
  const different = ((changes ?? []) as readonly FieldChange[]).map(changeText)
  return [...(problem === null ? [] : [String(problem)]), ...different, ...facts].join('; ')
}

/** One change on one line; of variables the names, with `+` for added, `-` for removed and `~` for changed ones. */
export function changeText(change: FieldChange): string {
  if ('from' in change) return `${change.field} ${valueText(change.from)} -> ${valueText(change.to)}`
  if (!('added' in change)) return `${change.field} changed`
  const signed = (sign: string, names: readonly string[]) => names.map(name => `${sign}${name}`)
  return [
    change.field,
    ...signed('+', change.added),
    ...signed('-', change.removed),
    ...signed('~', change.changed),
  ].join(' ')
}

function valueText(value: ShownValue): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
