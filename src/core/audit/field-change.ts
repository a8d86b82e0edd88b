/** Changes of the fields of an object, without anything that may be secret. */

/** A value of a field that may be shown. */
export type ShownValue =
  | string
  | number
  | boolean
  | null
  | readonly ShownValue[]
  | { readonly [name: string]: ShownValue }

/** The part of an object that the audit log compares. */
export interface AuditView {
  /** Fields whose values are shown. */
  readonly shown: Readonly<Record<string, ShownValue | undefined>>
  /** Fields that may hold a secret: the log states only that they changed. */
  readonly hidden: Readonly<Record<string, ShownValue | undefined>>
  /** Variables; only their names are shown. */
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
/** Limits: characters of a value, and names of variables in a list. */
const MOST = { characters: 500, names: 100 }

/**
 * Differences of two views.
 * @param before null for an object that was created
 * @param after null for one that was deleted
 */
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

/** A short value unchanged, else the beginning of its text. */
function shortValue(value: ShownValue): ShownValue {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return text.length <= MOST.characters ? value : shortened(text)
}

function shortList(names: readonly string[]): string[] {
  const kept = names.slice(0, MOST.names).map(shortened)
  return names.length > kept.length ? [...kept, `and ${names.length - kept.length} more`] : kept
}

/** The beginning of a long text, with the number of characters that were cut off. */
export function shortened(text: string): string {
  const rest = text.length - MOST.characters
  return rest <= 0 ? text : `${text.slice(0, MOST.characters)}... (${rest} more characters)`
}
