/** The elements of the table of settings: kinds of values, and settings of such kinds. */
import { withoutEnd } from '../core/text-parts.ts'

/** The problem of a text, as the rest of a sentence after the name of a setting; null for a valid text. */
export type Check = (text: string) => string | null

/** A kind of values: which texts stand for one, and for which. */
export interface ValueKind<Value> {
  readonly check: Check
  /** @param text one that the check accepts @param absolute makes a path absolute */
  readonly parse: (text: string, absolute: (path: string) => string) => Value
}

/** A whole number in a range, both ends included. */
export function wholeNumber(min: number, max: number, factor = 1): ValueKind<number> {
  const check: Check = text =>
    /^\d+$/.test(text) && Number(text) >= min && Number(text) <= max
      ? null
      : `must be a whole number from ${min} to ${max}`
  return { check, parse: text => Number(text) * factor }
}

/** A whole number in a range, both ends included, or a word. */
export function wholeNumberOr<const Word extends string>(
  word: Word,
  min: number,
  max: number,
): ValueKind<number | Word> {
  const { check, parse } = wholeNumber(min, max)
  return {
    check: text => (text === word || check(text) === null ? null : `${check(text)}, or ${word}`),
    parse: (text, absolute) => (text === word ? word : parse(text, absolute)),
  }
}

/** Whole seconds; the value is in milliseconds. */
export function seconds(min: number, max: number): ValueKind<number> {
  return wholeNumber(min, max, 1000)
}

/** Whole megabytes; the value is in bytes. */
export function megabytes(min: number, max: number): ValueKind<number> {
  return wholeNumber(min, max, 1024 * 1024)
}

/** One of these words. */
export function oneOf<const Word extends string>(words: readonly Word[]): ValueKind<Word> {
  const check: Check = text =>
    (words as readonly string[]).includes(text) ? null : `must be one of ${words.join(', ')}`
  return { check, parse: text => text as Word }
}

/** A text of this form. */
export function checkedText(check: Check): ValueKind<string> {
  return { check, parse: text => text }
}

/** Any text but the empty one. */
export const TEXT: ValueKind<string> = checkedText(text => (text === '' ? 'must not be empty' : null))

/** A path; the value is absolute. */
export const PATH: ValueKind<string> = { check: TEXT.check, parse: (text, absolute) => absolute(text) }

/** The address of a container engine, or a word in its place. */
export const ENGINE_ADDRESS: ValueKind<string> = checkedText(text =>
  /^(?:auto|off|(?:unix|npipe):\/\/\/.+|(?:tcp|https?):\/\/[^/?#\s]+\/?)$/.test(text)
    ? null
    : 'must be auto, off, or an address such as unix:///var/run/docker.sock or tcp://host:2375',
)

/** An IPv4 address or a host name. */
export const HOST_NAME: ValueKind<string> = checkedText(text =>
  /^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$/.test(text) ? null : 'must be an IPv4 address or a host name',
)

/** An HTTP origin; the value has no slash at its end. */
export const HTTP_ORIGIN: ValueKind<string> = {
  check: text =>
    /^https?:\/\/[^/?#]+\/?$/.test(text) && URL.canParse(text)
      ? null
      : 'must be an http or https origin without a path',
  parse: text => withoutEnd(text, '/'),
}

/** An HTTP address, which may have a path; the value has no slash at its end. */
export const HTTP_URL: ValueKind<string> = {
  check: text =>
    /^https?:\/\/[^/?#@\s]+(?:\/[^?#@\s]*)?$/.test(text) && URL.canParse(text)
      ? null
      : 'must be an http or https address without a query or a password',
  parse: text => withoutEnd(text, '/'),
}

/** An origin of web pages as browsers send it, or `*` for all; the value has no slash at its end. */
export const PAGE_ORIGIN: ValueKind<string> = {
  check: text =>
    text === '*' || HTTP_ORIGIN.check(text) === null ? null : 'must be * or an http or https origin without a path',
  parse: text => (text === '*' ? text : new URL(text).origin),
}

/** A factor of overcommitment. */
export const FACTOR: ValueKind<number> = {
  check: text => {
    const isNumber = /^\d+(\.\d+)?$/.test(text)
    return isNumber && Number(text) >= 1 && Number(text) <= 100 ? null : 'must be a number from 1 to 100'
  },
  parse: Number,
}

/** One setting: its option, its variable, and the meaning of its texts. */
export interface Setting<Value = unknown> {
  /** The option of `runyard serve`. */
  readonly flag: string
  /** The environment variable, without `RUNYARD_`. */
  readonly variable: string
  /** The placeholder of the value in the help; null for a setting that is on or off. */
  readonly argument: string | null
  /** True for a setting that may be given several times. */
  readonly many?: true
  /** The separator of several values in the variable; a colon when left out. */
  readonly separator?: string
  /** Its value is never repeated in messages. */
  readonly secret?: true
  /** The reason against a text in arguments, which everybody on the machine can read; null without one. */
  readonly exposes?: Check
  /** The default text; null without one. */
  readonly fallback: string | null
  readonly help: string
  readonly check: Check
  /** The value. @param texts those that were given, which the check accepts, or the fallback */
  readonly value: (texts: readonly string[], absolute: (path: string) => string) => Value
}

/** A setting with a default. */
export function setting<Value>(
  flag: string,
  argument: string,
  fallback: string,
  kind: ValueKind<Value>,
  help: string,
): Setting<Value> {
  const value: Setting<Value>['value'] = ([text = fallback], absolute) => kind.parse(text, absolute)
  return { flag, variable: variableName(flag), argument, fallback, help, check: kind.check, value }
}

/** A setting without a default; its value is null when it is not given. */
export function optional<Value>(
  flag: string,
  argument: string,
  kind: ValueKind<Value>,
  help: string,
): Setting<Value | null> {
  const value: Setting<Value | null>['value'] = ([text], absolute) =>
    text === undefined ? null : kind.parse(text, absolute)
  return { flag, variable: variableName(flag), argument, fallback: null, help, check: kind.check, value }
}

/** A setting that may be given several times. @param separator between several values in the variable */
export function many<Value>(
  flag: string,
  argument: string,
  kind: ValueKind<Value>,
  help: string,
  separator = ':',
): Setting<readonly Value[]> {
  const value: Setting<readonly Value[]>['value'] = (texts, absolute) => texts.map(text => kind.parse(text, absolute))
  return {
    flag,
    variable: variableName(flag),
    argument,
    many: true,
    separator,
    fallback: null,
    help,
    check: kind.check,
    value,
  }
}

/** A setting that is on or off, off by default. */
export function flag(name: string, help: string): Setting<boolean> {
  return {
    flag: name,
    variable: variableName(name),
    argument: null,
    fallback: 'false',
    help,
    check: oneOf(['true', 'false']).check,
    value: ([text]) => text === 'true',
  }
}

/** `--data-dir` is `DATA_DIR`. */
function variableName(flag: string): string {
  return flag.slice(2).replaceAll('-', '_').toUpperCase()
}

/** A table of settings by the names of their values; a table inside is a group of values. */
interface SettingTable {
  readonly [name: string]: Setting | SettingTable
}

/** The values of a table of settings. */
export type SettingValues<Table> = {
  readonly [Name in keyof Table]: Table[Name] extends Setting<infer Value> ? Value : SettingValues<Table[Name]>
}

/** The settings of a table and its groups, in order. */
export function settingsIn(table: SettingTable): Setting[] {
  return Object.values(table).flatMap(entry => (isSetting(entry) ? [entry] : settingsIn(entry)))
}

/** The values of a table. @param textsOf reads the texts of a setting, or its default */
export function readValues<Table extends SettingTable>(
  table: Table,
  textsOf: (setting: Setting) => readonly string[],
  absolute: (path: string) => string,
): SettingValues<Table> {
  const values = Object.entries(table).map(([name, entry]) => [
    name,
    isSetting(entry) ? entry.value(textsOf(entry), absolute) : readValues(entry, textsOf, absolute),
  ])
  return Object.fromEntries(values)
}

function isSetting(entry: Setting | SettingTable): entry is Setting {
  return typeof entry.flag === 'string'
}
