/** Parts of the tables of fields of endpoints and templates: fields, their checks, and functions over a table. */
import { type FieldProblem, fieldProblem } from '../field-problem.ts'

/**
 * The effect of a change of a field.
 *
 * - `release`: workers see the field. A change makes a release that lists it, and a rollback restores it.
 * - `kept`: no release lists the field, and a rollback restores it.
 * - `at once`: a change counts at once, and no rollback touches it.
 *
 * Any change of a template makes a release of its endpoints; there the effect defines the fields that the release
 * lists and keeps.
 */
export type Effect = 'release' | 'kept' | 'at once'

/**
 * The values by their names in the list of changes of a release. A method, so that a table may hold fields of all
 * types.
 */
type Listing<Value> = { of(value: Value): Readonly<Record<string, unknown>> }['of']

/** One field of an endpoint or a template. Its name has its unit: `S`, `Ms`, `Gb`. */
export interface ConfigField<Value, Change extends Effect = Effect> {
  readonly change: Change
  /** Default value; undefined if the creator must give one, or another field decides. */
  readonly fallback: Value | undefined
  /**
   * Name in the list of changes of a release, or the listed form of a value; null for a value that is listed
   * elsewhere.
   */
  readonly listed: string | Listing<Value> | null
  /** Content of the audit log: both values, the name alone where a value may be secret, or names of variables. */
  readonly audited: 'value' | 'change' | 'names'
  /** True for a configuration in which the field has an effect; REST version 2 shows it there. */
  applies(config: object): boolean
  /** Problems of a value. @param beside the fields that are given with it */
  check(value: Value, beside: object): FieldProblem[]
}

/** The parts of a field that have a default. */
type Details<Value> = Partial<Omit<ConfigField<Value>, 'change' | 'fallback'>>

/**
 * A field of workers: see {@link Effect}.
 * @param listed its name in the list of changes of a release, see {@link ConfigField}
 */
export function released<Value>(
  fallback: Value | undefined,
  listed: ConfigField<Value>['listed'],
  details: Details<Value> = {},
): ConfigField<Value, 'release'> {
  return { ...PLAIN, ...details, listed, fallback, change: 'release' }
}

/** A field that a rollback restores: see {@link Effect}. */
export function kept<Value>(fallback: Value | undefined, details: Details<Value> = {}): ConfigField<Value, 'kept'> {
  return { ...PLAIN, ...details, fallback, change: 'kept' }
}

/** A field whose change counts at once: see {@link Effect}. */
export function immediate<Value>(
  fallback: Value | undefined,
  details: Details<Value> = {},
): ConfigField<Value, 'at once'> {
  return { ...PLAIN, ...details, fallback, change: 'at once' }
}

const PLAIN = { listed: null, audited: 'value', applies: () => true, check: () => [] } as const

/** A table of fields by their names. */
export type FieldTable = Readonly<Record<string, ConfigField<unknown>>>

/** The values of a table. */
export type TableValues<Table> = {
  readonly [Name in keyof Table]: Table[Name] extends { readonly fallback: infer Value | undefined } ? Value : never
}

/** The names of the fields with some of the effects. */
export type NameWith<Table, Change extends Effect> = {
  [Name in keyof Table]: Table[Name] extends { readonly change: Change } ? Name : never
}[keyof Table]

/** The names in a table, in its order. */
export function namesIn<Table extends object>(table: Table): (keyof Table)[] {
  return Object.keys(table) as (keyof Table)[]
}

/** The names of the fields with some of the effects, in the order of their table. */
export function namesWith<Table extends FieldTable, Change extends Effect>(
  table: Table,
  effects: readonly Change[],
): NameWith<Table, Change>[] {
  const some: readonly Effect[] = effects
  return namesIn(table).filter(name => some.includes(table[name]!.change)) as NameWith<Table, Change>[]
}

/** Some of the members of an object. */
export function picked<Of, Name extends keyof Of>(value: Of, names: readonly Name[]): Pick<Of, Name> {
  return Object.fromEntries(names.map(name => [name, value[name]])) as unknown as Pick<Of, Name>
}

/** The defaults of a table: all values that a new object has unless its creator gives others. */
export function tableDefaults(table: FieldTable): Readonly<Record<string, unknown>> {
  const entries = Object.entries(table).map(([name, { fallback }]) => [name, fallback] as const)
  return Object.fromEntries(entries.filter(([, fallback]) => fallback !== undefined))
}

/** All problems of the given fields, in the order of their table. */
export function problemsIn(table: FieldTable, given: object): FieldProblem[] {
  const values = given as Readonly<Record<string, unknown>>
  return Object.entries(table).flatMap(([name, field]) =>
    values[name] === undefined ? [] : field.check(values[name], given),
  )
}

/** The values of fields in the list of changes of a release, by their names there. */
export function listedValues(table: FieldTable, values: object): Record<string, unknown> {
  const entries = Object.entries(table).flatMap(([name, { listed }]) => {
    const value = (values as Readonly<Record<string, unknown>>)[name]
    if (listed === null) return []
    return typeof listed === 'string' ? [[listed, value] as const] : Object.entries(listed(value))
  })
  return Object.fromEntries(entries)
}

/** The check of an integer. @param field its name @param unit of the values, if its bounds have one */
export function integer(field: string, least: number, most: number, unit = ''): Pick<ConfigField<number>, 'check'> {
  const problem = `must be an integer from ${least} to ${most}${unit === '' ? '' : ` ${unit}`}`
  return { check: value => (isIntegerIn(value, least, most) ? [] : [fieldProblem(field, problem)]) }
}

/** True for an integer in a range, both ends included. */
export function isIntegerIn(value: number, least: number, most: number): boolean {
  return Number.isInteger(value) && value >= least && value <= most
}

/** Limit of items of one list of an endpoint. */
export const MAX_ITEMS = 100

/** The problem of a list that is too long. */
export function lengthProblems(field: string, list: readonly unknown[], most = MAX_ITEMS): FieldProblem[] {
  return list.length > most ? [fieldProblem(field, `must have at most ${most} items`)] : []
}

/** The problems of items without the form of their list. @param form in a sentence behind the item */
export function formProblems(
  field: string,
  items: readonly string[],
  hasForm: (item: string) => boolean,
  form: string,
): FieldProblem[] {
  return items.filter(item => !hasForm(item)).map(item => fieldProblem(field, form, `'${item}'`))
}
