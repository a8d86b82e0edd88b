import { resolve } from 'node:path'
import { type Command, Option } from 'commander'
import { JsonText } from '../../core/json/json-format.ts'
import { CliError, EXIT } from '../exit.ts'
import { type ConnectionOptions, withConnection } from './connection.ts'
import { isAtTerminal, secretText, withoutLineEnd } from './hidden-input.ts'
import { type KindName, OPTION_KINDS } from './kinds.ts'
import { findId } from './names.ts'
import { setsFields, setsSecrets } from './option-fields.ts'
import { parseSpan, yesOrNo } from './option-words.ts'
import { readText } from './text-files.ts'

/** An option of a command that sets a member of the request body. */
export interface Field {
  /** Flag in commander's syntax, such as `--max <n>`. */
  readonly flag: string
  readonly help: string
  /** Path of the member in the body, such as `workers.max`. */
  readonly path: string
  /**
   * `pairs` adds to the object at the path, or replaces there; `names` removes from it. `repeated` is a list with an
   * option for each. `choice` is one of the words in capitals that the server accepts. `nullable` is a text, or the
   * word none. `secret` is read from a file, from standard input, or from the terminal after a question.
   */
  readonly kind:
    | 'text'
    | 'nullable'
    | 'choice'
    | 'number'
    | 'boolean'
    | 'yes-no'
    | 'list'
    | 'repeated'
    | 'pairs'
    | 'names'
    | 'json'
    | 'secret'
    | 'image'
  /** Parses words that people type in place of JSON; with the kind `json`. */
  readonly parse?: (flag: string, text: string) => unknown
  /** Milliseconds of 1; then a number may be a span such as `10m`, too. With the kind `number`. */
  readonly unitMs?: number
  /** The kind of things whose ids or names it takes; with the kinds `text` and `repeated`. */
  readonly of?: KindName
  /** Names a secret in the question for it. */
  readonly question?: string
  /** True when the help does not show it. */
  readonly isHidden?: boolean
}

/** Options of a command that sends a body. */
export interface BodyOptions {
  readonly file?: string
  readonly set?: readonly string[]
  readonly [option: string]: unknown
}

/** Adds the options of a request body to a command, and those of its connection. */
export function withBody(command: Command, fields: readonly Field[]): Command {
  for (const { flag, help, kind, path, isHidden = false } of fields) {
    const isSecret = kind === 'pairs' || kind === 'names' || kind === 'secret'
    const option = (isSecret ? setsSecrets : setsFields)(new Option(flag, help), path, ...(OTHER_PATHS[kind] ?? []))
    if (kind === 'pairs' || kind === 'names' || kind === 'repeated') option.argParser(collected)
    command.addOption(option.hideHelp(isHidden))
  }
  command.option('--file <file>', 'JSON object to start from; - for standard input')
  command.option('--set <path=value>', 'any member, such as workers.max=5; again for more', collected)
  return withConnection(command)
}

/** Members that an option becomes beside the one at its path. */
const OTHER_PATHS: Partial<Record<Field['kind'], readonly string[]>> = { pairs: ['envChanges'], names: ['envChanges'] }

/** True for an option of several values that is the word none. */
function isNone(values: readonly string[]): boolean {
  return values.length === 1 && values[0] === 'none'
}

/**
 * The options with ids in place of the names of things.
 * @throws CliError with candidates for a name of several things or none
 */
export async function withIds<Options extends BodyOptions & ConnectionOptions>(
  fields: readonly Field[],
  options: Options,
): Promise<Options> {
  const ids: Record<string, unknown> = {}
  for (const { flag, of } of fields) {
    const name = optionName(flag)
    const given = options[name]
    if (of === undefined || given === undefined) continue
    const find = (text: string) => findId(options, OPTION_KINDS[of], text, longFlag(flag))
    if (Array.isArray(given)) {
      const names = given as readonly string[]
      ids[name] = isNone(names) ? names : await Promise.all(names.map(find))
    } else ids[name] = await find(String(given))
  }
  return { ...options, ...ids }
}

/**
 * Adds the secrets that are missing in a body: asked for on a terminal, else read from standard input.
 * @param isChange true for a change: it asks for a secret only where it changes nothing else
 */
export async function withSecrets(
  fields: readonly Field[],
  options: BodyOptions,
  body: Body,
  isChange = false,
): Promise<Body> {
  const whole = { ...body }
  for (const { flag, path, kind, question = path } of fields) {
    if (kind !== 'secret') continue
    const given = options[optionName(flag)]
    const isLeftOut = given === undefined && !(path in body) && !(isChange && Object.keys(body).length > 0)
    if ((isLeftOut && options.file !== '-') || given === '-') whole[path] = await secretText(question)
  }
  return whole
}

/** Members are plain values, or the text that was given. */
type Body = Record<string, unknown>

/** Variables to add or replace by their names, and null for those to remove. */
type Variables = Map<string, string | null>

/**
 * Builds the body from the options: the file first, then single options, then `--set`. Variables are added to those of
 * the file.
 * @param isChange true if the body changes a resource: then single variables are a change of their own, which keeps
 *   the others
 * @throws CliError for an unreadable file or an invalid value
 */
export function readBody(fields: readonly Field[], options: BodyOptions, isChange = false): Body {
  const body: Body = options.file === undefined ? {} : readJsonObject(options.file)
  const variables: Variables = new Map()
  for (const field of fields) {
    const given = options[optionName(field.flag)]
    if (given === undefined || (field.kind === 'secret' && given === '-')) continue
    if (field.kind === 'pairs' || field.kind === 'names') addVariables(variables, field, given as string[])
    else assign(body, field.path, memberValue(field, given))
  }
  for (const setting of options.set ?? []) {
    const at = setting.indexOf('=')
    if (at < 1) throw new CliError(`--set takes path=value, not '${setting}'`, EXIT.usage)
    const [path, value] = [setting.slice(0, at), setting.slice(at + 1)]
    if (path.startsWith(VARIABLE)) variables.set(path.slice(VARIABLE.length), value)
    else if (isChange && path.startsWith('limits.'))
      throw new CliError(`a single limit is changed with --limit ${path.slice('limits.'.length)}=${value}`, EXIT.usage)
    else assign(body, path, looseJson(value))
  }
  return withVariables(body, variables, isChange)
}

const VARIABLE = 'env.'

function addVariables(variables: Variables, { flag, kind }: Field, words: readonly string[]): void {
  const values = kind === 'pairs' ? Object.entries(namedValues(flag, words)) : words.map(name => [name, null] as const)
  for (const [name, value] of values) {
    if (name.includes('=')) throw new CliError(`${longFlag(flag)} takes a NAME, not '${name}'`, EXIT.usage)
    if (variables.has(name)) throw new CliError(`${name} is both set and removed; leave out one of them`, EXIT.usage)
    variables.set(name, value)
  }
}

/** All variables of a body are replaced where it has some; else single ones are changed. */
function withVariables(body: Body, variables: Variables, isChange: boolean): Body {
  if (variables.size === 0) return body
  if (isChange && body.env === undefined) return { ...body, envChanges: Object.fromEntries(variables) }
  const all = new Map(Object.entries(objectMembers(body.env)))
  for (const [name, value] of variables) {
    if (value === null) all.delete(name)
    else all.set(name, value)
  }
  return { ...body, env: Object.fromEntries(all) }
}

/** Collects an option that can be given several times. */
export function collected(value: string, all: readonly string[] | undefined): string[] {
  return [...(all ?? []), value]
}

/** JSON from an argument: the text itself, `@file`, or `-` for standard input. @throws CliError for other text */
export function jsonArgument(given: string, what: string): JsonText {
  const text = textArgument(given)
  try {
    JSON.parse(text)
    return new JsonText(text)
  } catch (error) {
    throw new CliError(`${what} is not JSON: ${(error as Error).message}`, EXIT.data)
  }
}

/**
 * Text from an argument: the argument itself, the content of `@file`, or `-` for standard input without its last line
 * end.
 */
function textArgument(text: string, keepsMark = false): string {
  if (text === '-') return withoutLineEnd(readText(null, { keepsMark }))
  return text.startsWith('@') ? readText(text.slice(1), { keepsMark }) : text
}

function readJsonObject(file: string): Body {
  const members = jsonArgument(file === '-' ? '-' : `@${file}`, file === '-' ? 'standard input' : file).members()
  if (members !== null) return Object.fromEntries(members)
  throw new CliError(`${file} must hold a JSON object`, EXIT.data)
}

function memberValue({ flag: flags, kind, parse, unitMs }: Field, option: unknown): unknown {
  const flag = longFlag(flags)
  const text = String(option)
  if (kind === 'number') return numberValue(flag, text, unitMs)
  if (kind === 'boolean') return option === true || text === 'true'
  if (kind === 'yes-no') {
    const isYes = yesOrNo(text)
    if (isYes === null) throw new CliError(`${flag} takes true or false, not '${text}'`, EXIT.usage)
    return isYes
  }
  if (kind === 'json') {
    if (parse === undefined || /^[[{@-]|^null$/.test(text)) return jsonArgument(text, flag)
    return parse(flag, text)
  }
  if (kind === 'repeated') return isNone(option as readonly string[]) ? [] : option
  if (kind === 'list') return text === '' ? [] : text.split(',').map(item => item.trim())
  if (kind === 'choice') return text.toUpperCase().replaceAll('-', '_')
  if (kind === 'text') return text
  if (kind === 'nullable') return text === 'none' || text === '' ? null : text
  if (kind === 'image') return text.startsWith('dir:') ? `dir:${resolve(text.slice('dir:'.length))}` : text
  return secretArgument(flag, text)
}

function numberValue(flag: string, text: string, unitMs: number | undefined): JsonText | number {
  const number = Number(text)
  if (text.trim() !== '' && Number.isFinite(number)) return isJson(text) ? new JsonText(text) : number
  const span = unitMs === undefined ? null : parseSpan(text, unitMs)
  if (span !== null) return span
  const spans = unitMs === undefined ? '' : ', or a time such as 30s or 10m'
  throw new CliError(`${flag} takes a number${spans}, not '${text}'`, EXIT.usage)
}

/** A secret of a file. The message does not repeat a text that may be a secret. */
function secretArgument(flag: string, text: string): string {
  if (text.startsWith('@')) return textArgument(text, true)
  const how = isAtTerminal() ? 'leave it out to be asked for it' : 'leave it out to give it on standard input'
  throw new CliError(
    `${flag} takes @<file>, or - for standard input: lists of processes show arguments; ${how}`,
    EXIT.usage,
  )
}

/** The members of pairs such as `NAME=value`. @throws CliError for a text that is no pair */
export function namedValues(flag: string, pairs: readonly string[]): Record<string, string> {
  return Object.fromEntries(pairs.map(pair => namedValue(flag, pair)))
}

function namedValue(flags: string, pair: string): [string, string] {
  const at = pair.indexOf('=')
  if (at < 1) throw new CliError(`${longFlag(flags)} takes NAME=value, not '${pair}'`, EXIT.usage)
  return [pair.slice(0, at), pair.slice(at + 1)]
}

/** Parses JSON; other text stays text, so that plain words need no quotes. */
function looseJson(text: string): unknown {
  return isJson(text) ? new JsonText(text) : text
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function assign(body: Body, path: string, value: unknown): void {
  const names = path.split('.')
  const last = names.pop()!
  let place = body
  for (const name of names) {
    const inner = objectMembers(Object.hasOwn(place, name) ? place[name] : undefined)
    Object.defineProperty(place, name, { value: inner, enumerable: true, configurable: true, writable: true })
    place = inner
  }
  Object.defineProperty(place, last, { value, enumerable: true, configurable: true, writable: true })
}

/** The members of an object in a body, to which others are added; none for any other value. */
export function objectMembers(value: unknown): Body {
  if (value instanceof JsonText) return Object.fromEntries(value.members() ?? [])
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {}
}

/** A member of a body as a plain value, for a decision about it. */
export function plainValue(value: unknown): unknown {
  return value instanceof JsonText ? value.value() : value
}

/** Commander's property name of an option. */
function optionName(flag: string): string {
  return longFlag(flag)
    .slice(2)
    .replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

/** An option as it is typed, without its argument. */
function longFlag(flag: string): string {
  return /--[a-z][a-z-]*/.exec(flag)![0]
}
