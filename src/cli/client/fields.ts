import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { CliError, EXIT } from '../exit.ts'

/** An option of a command that sets a member of the request body. */
export interface Field {
  /** Flag in commander's syntax, such as `--max <n>`. */
  readonly flag: string
  readonly help: string
  /** Path of the member in the body, such as `workers.max`. */
  readonly path: string
  readonly kind: 'text' | 'number' | 'boolean' | 'list' | 'pairs' | 'json' | 'source' | 'image'
}

/** Options of a command that sends a body. */
export interface BodyOptions {
  readonly file?: string
  readonly set?: readonly string[]
  readonly [option: string]: unknown
}

type Body = Record<string, unknown>

/**
 * Builds the body from the options: the file first, then single options, then `--set`.
 * @throws CliError for an unreadable file or an invalid value
 */
export function bodyOf(fields: readonly Field[], options: BodyOptions): Body {
  const body: Body = options.file === undefined ? {} : readJsonObject(options.file)
  for (const field of fields) {
    const given = options[optionName(field.flag)]
    if (given !== undefined) assign(body, field.path, memberValue(field, given))
  }
  for (const setting of options.set ?? []) {
    const at = setting.indexOf('=')
    if (at < 1) throw new CliError(`--set takes path=value, not '${setting}'`, EXIT.usage)
    assign(body, setting.slice(0, at), looseJson(setting.slice(at + 1)))
  }
  return body
}

/** Collects an option that can be given several times. */
export function collected(value: string, all: readonly string[] | undefined): string[] {
  return [...(all ?? []), value]
}

/** JSON from an argument: the text itself, `@file`, or `-` for standard input. */
export function jsonArgument(text: string, what: string): unknown {
  try {
    return JSON.parse(textArgument(text))
  } catch (error) {
    throw new CliError(`${what} is not JSON: ${(error as Error).message}`, EXIT.data)
  }
}

/** Text from an argument: the argument itself, the content of `@file`, or `-` for standard input without its last line end. */
function textArgument(text: string): string {
  if (text === '-') return readSource(null).replace(/\r?\n$/, '')
  return text.startsWith('@') ? readSource(text.slice(1)) : text
}

function readJsonObject(file: string): Body {
  const value = jsonArgument(file === '-' ? '-' : `@${file}`, file === '-' ? 'standard input' : file)
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value }
  throw new CliError(`${file} must hold a JSON object`, EXIT.data)
}

/** @param file null for standard input */
function readSource(file: string | null): string {
  try {
    return readFileSync(file ?? 0, 'utf8')
  } catch (error) {
    throw new CliError(`${file ?? 'standard input'} cannot be read: ${(error as Error).message}`, EXIT.notFound)
  }
}

function memberValue({ flag, kind }: Field, given: unknown): unknown {
  const text = String(given)
  if (kind === 'number') {
    const number = Number(text)
    if (text.trim() !== '' && Number.isFinite(number)) return number
    throw new CliError(`${flag} takes a number, not '${text}'`, EXIT.usage)
  }
  if (kind === 'boolean') return given === true || text === 'true'
  if (kind === 'json') return jsonArgument(text, flag)
  if (kind === 'list') return text === '' ? [] : text.split(',').map(item => item.trim())
  if (kind === 'text') return text
  if (kind === 'image') return text.startsWith('dir:') ? `dir:${resolve(text.slice('dir:'.length))}` : text
  if (kind === 'source') return textArgument(text)
  return namedValues(flag, given as string[])
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
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

function assign(body: Body, path: string, value: unknown): void {
  const names = path.split('.')
  const last = names.pop()!
  let place = body
  for (const name of names) {
    const next = Object.hasOwn(place, name) ? place[name] : undefined
    const inner: Body = typeof next === 'object' && next !== null && !Array.isArray(next) ? { ...next } : {}
    Object.defineProperty(place, name, { value: inner, enumerable: true, configurable: true, writable: true })
    place = inner
  }
  Object.defineProperty(place, last, { value, enumerable: true, configurable: true, writable: true })
}

/** Commander's property name of an option. */
function optionName(flag: string): string {
  const long = /--([a-z][a-z-]*)/.exec(flag)![1]!
  return long.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())
}
