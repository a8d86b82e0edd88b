/**
 * Changes that a command made, for people: names and values as the audit log shows them, of variables and secrets no
 * values.
 */
import { type AuditView, fieldChanges, type ShownValue } from '../../core/audit/field-change.ts'
import { changeText } from './audit-columns.ts'
import { onOneLine, type TableRow } from './table.ts'

/** Members whose values may be secret. */
const HIDDEN = new Set(['args', 'description'])

/**
 * The differences of a resource before and after a change, a line each; empty for none.
 * @param members those that were changed; null for any
 */
export function changeLines(before: TableRow, after: TableRow, members: readonly string[] | null): string[] {
  const chosen = (row: TableRow) =>
    viewOf(Object.entries(row).filter(([name]) => members === null || members.includes(name)))
  return fieldChanges(chosen(before), chosen(after)).map(change => onOneLine(changeText(change)))
}

function viewOf(members: readonly (readonly [name: string, value: unknown])[]): AuditView {
  const isHidden = ([name]: readonly [string, unknown]) => HIDDEN.has(name)
  const plain = members.filter(([name]) => name !== 'env')
  const env = Object.fromEntries(members).env as Readonly<Record<string, string>> | undefined
  return {
    shown: Object.fromEntries(plain.filter(member => !isHidden(member)).flatMap(flattened)),
    hidden: Object.fromEntries(plain.filter(isHidden)) as AuditView['hidden'],
    variables: env === undefined ? {} : { env },
  }
}

/** The members of an object by themselves, as `workers.max`. */
function flattened([name, value]: readonly [string, unknown]): [string, ShownValue][] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [[name, value as ShownValue]]
  return Object.entries(value).map(([inner, one]) => [`${name}.${inner}`, one as ShownValue])
}
