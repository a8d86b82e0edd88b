import { resolve } from 'node:path'
import { JsonText } from '../../core/json/json-format.ts'
import { CliError, EXIT } from '../exit.ts'
import { readText } from './text-files.ts'

/** An option of a command that sets a member of the request body. */
export interface Field {
  /** Flag in commander's syntax, such as `--max <n>`. */
  readonly flag: string
  readonly help: string
  /** Path of the member in the body, such as `workers.max`. */
  readonly path: string
  /** `pairs` adds to the object at the path, or replaces there; `names` removes from it. */
  readonly kind: 'text' | 'number' | 'boolean' | 'list' | 'pairs' | 'names' | 'json' | 'source' | 'image'
}

/** Options of a command that sends a body. */
export interface BodyOptions {
  readonly file?: string
  readonly set?: readonly string[]
  readonly [option: string]: unknown
}

/** Members are plain values, or the text that was given. */
type Body = Record<string, unknown>

/** Variables to add or replace by their names, and null for those to remove. */
type Variables = Map<string, string | null>

/**
 * Builds the body from the options: the file first, then single options, then `--set`. Variables are added to those of the file.
 * @param isChange whether the body changes something: then single variables are a change of their own, which keeps the others
 * @throws CliError for an unreadable file or an invalid value
 */
export function bodyOf(fields: readonly Field[], options: BodyOptions, isChange = false): Body {
  const body: Body = options.file === undefined ? {} : readJsonObject(options.file)
  const variables: Variables = new Map()
  for (const field of fields) {
    const given = options[optionName(field.flag)]
    if (given === undefined) continue
    if (field.kind === 'pairs' || field.kind === 'names') addVariables(variables, field, given as string[])
    else assign(body, field.path, memberValue(field, given))
  }
  for (const setting of options.set ?? []) {
    const at = setting.indexOf('=')
    if (at < 1) throw new CliError(`--set takes path=value, not '${setting}'`, EXIT.usage)
    const [path, value] = [setting.slice(0, at), setting.slice(at + 1)]
    if (path.startsWith(VARIABLE)) variables.set(path.slice(VARIABLE.length), value)
    else if (isChange && path.startsWith('limits.'))
      throw new CliError('limits are changed as a whole: give all of them with --limits', EXIT.usage)
    else assign(body, path, looseJson(value))
  }
  return withVariables(body, variables, isChange)
}

const VARIABLE = 'env.'

function addVariables(variables: Variables, { flag, kind }: Field, given: readonly string[]): void {
  const values = kind === 'pairs' ? Object.entries(namedValues(flag, given)) : given.map(name => [name, null] as const)
  for (const [name, value] of values) {
    if (name.includes('=')) throw new CliError(`${flag} takes a NAME, not '${name}'`, EXIT.usage)
    if (variables.has(name)) throw new CliError(`${name} is to be set and removed; leave one of them out`, EXIT.usage)
    variables.set(name, value)
  }
}

/** All variables of a body are replaced where it has some; else single ones are changed. */
function withVariables(body: Body, variables: Variables, isChange: boolean): Body {
  if (variables.size === 0) return body
  if (isChange && body.env === undefined) return { ...body, envChanges: Object.fromEntries(variables) }
  const all = new Map(Object.entries(membersOf(body.env)))
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

/** Text from an argument: the argument itself, the content of `@file`, or `-` for standard input without its last line end. */
function textArgument(text: string, keepsMark = false): string {
  if (text === '-') return withoutLineEnd(readText(null, { keepsMark }))
  return text.startsWith('@') ? readText(text.slice(1), { keepsMark }) : text
}

function withoutLineEnd(text: string): string {
  if (!text.endsWith('\n')) return text
  return text.slice(0, text.endsWith('\r\n') ? -2 : -1)
}

function readJsonObject(file: string): Body {
  const members = jsonArgument(file === '-' ? '-' : `@${file}`, file === '-' ? 'standard input' : file).members()
  if (members !== null) return Object.fromEntries(members)
  throw new CliError(`${file} must hold a JSON object`, EXIT.data)
}

function memberValue({ flag, kind }: Field, given: unknown): unknown {
  const text = String(given)
  if (kind === 'number') {
    const number = Number(text)
    if (text.trim() !== '' && Number.isFinite(number)) return isJson(text) ? new JsonText(text) : number
    throw new CliError(`${flag} takes a number, not '${text}'`, EXIT.usage)
  }
  if (kind === 'boolean') return given === true || text === 'true'
  if (kind === 'json') return jsonArgument(text, flag)
  if (kind === 'list') return text === '' ? [] : text.split(',').map(item => item.trim())
  if (kind === 'text') return text
  if (kind === 'image') return text.startsWith('dir:') ? `dir:${resolve(text.slice('dir:'.length))}` : text
  return textArgument(text, true)
}

/** The members of pairs such as `NAME=value`. @throws CliError for what is no pair */
export function namedValues(flag: string, pairs: readonly string[]): Record<string, string> {
  return Object.fromEntries(pairs.map(pair => namedValue(flag, pair)))
}

function namedValue(flag: string, pair: string): [string, string] {
  const at = pair.indexOf('=')
  if (at < 1) throw new CliError(`${flag} takes NAME=value, not '${pair}'`, EXIT.usage)
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
    const inner = membersOf(Object.hasOwn(place, name) ? place[name] : undefined)
    Object.defineProperty(place, name, { value: inner, enumerable: true, configurable: true, writable: true })
    place = inner
  }
  Object.defineProperty(place, last, { value, enumerable: true, configurable: true, writable: true })
}

/** The members of an object in a body, to which others are added; none for any other value. */
export function membersOf(value: unknown): Body {
  if (value instanceof JsonText) return Object.fromEntries(value.members() ?? [])
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {}
}

/** A member of a body as a plain value, for a decision about it. */
export function plainValue(value: unknown): unknown {
  return value instanceof JsonText ? value.value() : value
}

/** Commander's property name of an option. */
function optionName(flag: string): string {
  const long = /--([a-z][a-z-]*)/.exec(flag)![1]!
  return long.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())
}
