/** What a change did to the fields of an object, without anything that may be a secret. */

/** A value of a field that may be shown. */
export type ShownValue =
  | string
  | number
  | boolean
  | null
  | readonly ShownValue[]
  | { readonly [name: string]: ShownValue }

/** An object as far as the audit log looks at it. */
export interface AuditView {
  /** Fields whose values are shown. */
  readonly shown: Readonly<Record<string, ShownValue | undefined>>
  /** Fields that may hold a secret: it is said that they have changed. */
  readonly hidden: Readonly<Record<string, ShownValue | undefined>>
  /** Variables, of which names are shown. */
  readonly variables: Readonly<Record<string, Readonly<Record<string, string>>>>
}

/** A change of one field. */
export type FieldChange =
  | { readonly field: string; readonly from: ShownValue; readonly to: ShownValue }
  | { readonly field: string; readonly changed: true }
  | {
      readonly field: string
      readonly added: readonly string[]
      readonly removed: readonly string[]
      readonly changed: readonly string[]
    }

const NOTHING: AuditView = { shown: {}, hidden: {}, variables: {} }
/** Characters of a value, and names of variables in a list. */
const MOST = { characters: 500, names: 100 }

/** What is different. @param before null for an object that was made @param after null for one that was removed */
export function fieldChanges(before: AuditView | null, after: AuditView | null): FieldChange[] {
  const old = before ?? NOTHING
  const now = after ?? NOTHING
  return [...shownChanges(old, now), ...hiddenChanges(old, now), ...variableChanges(old, now)]
}

function shownChanges(old: AuditView, now: AuditView): FieldChange[] {
  return namesIn(old.shown, now.shown).flatMap(field => {
    const [from = null, to = null] = [old.shown[field], now.shown[field]]
    return isSame(from, to) ? [] : [{ field, from: shortValue(from), to: shortValue(to) }]
  })
}

function hiddenChanges(old: AuditView, now: AuditView): FieldChange[] {
  return namesIn(old.hidden, now.hidden)
    .filter(field => !isSame(old.hidden[field] ?? null, now.hidden[field] ?? null))
    .map(field => ({ field, changed: true }))
}

function variableChanges(old: AuditView, now: AuditView): FieldChange[] {
  return namesIn(old.variables, now.variables).flatMap(field => {
    const [from = {}, to = {}] = [old.variables[field], now.variables[field]]
    const added = Object.keys(to).filter(name => !Object.hasOwn(from, name))
    const removed = Object.keys(from).filter(name => !Object.hasOwn(to, name))
    const changed = Object.keys(to).filter(name => Object.hasOwn(from, name) && from[name] !== to[name])
    if (added.length + removed.length + changed.length === 0) return []
    return [{ field, added: shortList(added), removed: shortList(removed), changed: shortList(changed) }]
  })
}

function namesIn(old: object, now: object): string[] {
  return [...new Set([...Object.keys(old), ...Object.keys(now)])]
}

function isSame(one: ShownValue, other: ShownValue): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}

/** A value as it is where it is short, else the beginning of its text. */
function shortValue(value: ShownValue): ShownValue {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return text.length <= MOST.characters ? value : shortened(text)
}

function shortList(names: readonly string[]): string[] {
  const kept = names.slice(0, MOST.names).map(shortened)
  return names.length > kept.length ? [...kept, `and ${names.length - kept.length} more`] : kept
}

/** A text with a note of how much of it is missing, where it is long. */
export function shortened(text: string): string {
  const rest = text.length - MOST.characters
  return rest <= 0 ? text : `${text.slice(0, MOST.characters)}... (${rest} more characters)`
}
