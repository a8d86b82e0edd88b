/**
 * Options by the fields of requests that they become, so that a message about a field names the option that was typed.
 */
import { type Command, Option } from 'commander'
import { nearest } from '../../core/nearest.ts'
import { CliError } from '../exit.ts'

/** A request that the server refuses because of its content. */
export class RefusedRequest extends CliError {
  /** Sentences about single fields, each after the path of its field where it has one. */
  readonly failures: readonly string[]

  constructor(message: string, exitCode: number, failures: readonly string[]) {
    super(message, exitCode)
    this.failures = failures
  }
}

/** The fields of a request that an option sets. */
interface OptionTarget {
  /** Paths of fields, such as `workers.max`; the parameters of a query have no other form. */
  readonly fields: readonly string[]
  /** True when its value is in no message. */
  readonly isSecret: boolean
}

const optionTargets = new WeakMap<Option, OptionTarget>()

/** An option that becomes fields of a request. */
export function fieldOption(flags: string, description: string, ...fields: readonly string[]): Option {
  return setsFields(new Option(flags, description), ...fields)
}

/** Declares the fields of a request that an option becomes. */
export function setsFields(option: Option, ...fields: readonly string[]): Option {
  optionTargets.set(option, { fields, isSecret: false })
  return option
}

/** As {@link setsFields}, for an option whose value no message may show. */
export function setsSecrets(option: Option, ...fields: readonly string[]): Option {
  optionTargets.set(option, { fields, isSecret: true })
  return option
}

/** The fields that the options of a command become, with the flag of each. */
export function flagsByField(command: Command): Map<string, string> {
  return new Map(
    command.options.flatMap(option => (optionTargets.get(option)?.fields ?? []).map(f => [f, optionFlag(option)])),
  )
}

/**
 * The flag that sets the field of this name, such as `--max` for `workers-max`, since the API has `workers.max`; null
 * for no such field.
 */
export function flagNamedAsField(command: Command, name: string): string | null {
  const bareLetters = (text: string) => text.replaceAll(/[.-]/g, '').toLowerCase()
  const fields = [...flagsByField(command)]
  return fields.find(([field]) => bareLetters(field) === bareLetters(name))?.[1] ?? null
}

/** Longest value of an option that a message repeats. */
const MOST_SHOWN = 60

/** The message of a refused request in the words of the command that sent it. */
export function messageFor(command: Command, { message, failures }: RefusedRequest): string {
  // Job operations have all of their sentences in one text.
  const single = failures.flatMap(failure => (failure.startsWith('"') ? failure.split(/; (?=")/) : [failure]))
  const sentences = single.map(sentence => sentenceFor(command, sentence))
  // About the request as a whole: it names no field.
  if (sentences.every((sentence, index) => sentence === single[index])) return message
  const unique = [...new Set(sentences)]
  return unique.length === 1 ? unique[0]! : ['the request is refused:', ...unique.map(line => `  ${line}`)].join('\n')
}

function sentenceFor(command: Command, failure: string): string {
  const parts = splitFailure(failure) ?? splitBareFailure(command, failure)
  if (parts === null) return failure
  const { place, path, problem } = parts
  if (place === 'path') return `${argumentFor(command, path)}: ${problem}`
  const unknown = /^additional properties '(.*)' not allowed$/.exec(problem)?.[1]
  const field = unknown === undefined ? path : [path, unknown].filter(name => name !== '').join('.')
  const text = unknown === undefined ? withFlags(command, problem, path === '') : noSuchMember(command, field)
  if (field === '') return text
  if (text.startsWith('is required')) return `${flagFor(command, field)} ${text}${exampleFor(command, field, text)}`
  return `${typedText(command, field)}${VERB.test(text) ? '' : ':'} ${text}`
}

/** The beginning of a sentence whose subject is the field. */
const VERB = /^(?:must|is|has|needs|cannot)\b/

function noSuchMember(command: Command, field: string): string {
  const close = nearest(field, [...flagsByField(command).keys()])
  return `there is no such member${close === null ? '' : `; did you mean ${close}?`}`
}

/** An argument of a command as it was typed. */
function argumentFor(command: Command, name: string): string {
  const index = command.registeredArguments.findIndex(argument => argument.name() === name)
  return index < 0 ? name : `${name} '${command.args[index] ?? ''}'`
}

/** A sentence about a field. */
interface FailureParts {
  /** The part of the request: `$` for the body. */
  readonly place: string
  readonly path: string
  readonly problem: string
}

/** Null for a sentence without a field. */
function splitFailure(failure: string): FailureParts | null {
  const [, place, rest] = /^(\$|query|path)(?=[.:[])\.?(.*)$/s.exec(failure) ?? []
  if (place === undefined || rest === undefined) return null
  const at = rest.indexOf(': ')
  if (at < 0) return null
  return { place, path: rest.slice(0, at).replaceAll(/\[\d+\]/g, ''), problem: rest.slice(at + 2) }
}

/**
 * The parts of a sentence that begins with the field of an option: `"webhook" must be ...` or `status 'DONE' is ...`.
 */
function splitBareFailure(command: Command, failure: string): FailureParts | null {
  const [, quoted, bare, said = ''] = /^(?:"([\w.]+)"|([\w.]+) '[^']*') (.*)$/s.exec(failure) ?? []
  const path = quoted ?? bare
  return path !== undefined && flagsByField(command).has(path) ? { place: '$', path, problem: said } : null
}

/** The typed text for a field: the option with its value, where that may be shown. */
function typedText(command: Command, field: string): string {
  const { set, file } = command.opts<{ set?: unknown; file?: unknown }>()
  // The fields of `deploy` are variables, not paths.
  const setsMembers = command.options.some(option => option.long === '--set' && !optionTargets.has(option))
  const settings: readonly string[] = setsMembers && Array.isArray(set) ? set : []
  const setting = settings.findLast(text => covers(text.split('=')[0]!, field))
  if (setting !== undefined) return `--set ${isShown(setting, field) ? setting : setting.split('=')[0]}`
  const isTyped = (one: Option) => command.getOptionValueSource(one.attributeName()) === 'cli'
  const option = optionsFor(command, field).find(isTyped) ?? optionsWithin(command, field).find(isTyped)
  if (option !== undefined) return typedOption(option, command.getOptionValue(option.attributeName()))
  if (typeof file === 'string') return `${field} in ${file === '-' ? 'standard input' : file}`
  return flagFor(command, field)
}

function optionsFor({ options }: Command, field: string): Option[] {
  return options.filter(option => optionTargets.get(option)?.fields.some(one => covers(one, field)) === true)
}

/** The options that become a part of a field. */
function optionsWithin({ options }: Command, field: string): Option[] {
  return options.filter(option => optionTargets.get(option)?.fields.some(one => covers(field, one)) === true)
}

/** The option that becomes a field, or the field where there is none. */
function flagFor(command: Command, field: string): string {
  const [option] = optionsFor(command, field)
  return option === undefined ? field : optionFlag(option)
}

/** The example in the help of a missing option. */
function exampleFor(command: Command, field: string, text: string): string {
  const [option] = optionsFor(command, field)
  return text === 'is required' && option?.description.startsWith('such as ') === true ? `, ${option.description}` : ''
}

function typedOption(option: Option, value: unknown): string {
  const flag = optionFlag(option)
  const text = typeof value === 'string' || typeof value === 'number' ? String(value) : ''
  const isHidden = optionTargets.get(option)?.isSecret === true || text === '' || text.length > MOST_SHOWN
  return isHidden ? flag : `${flag} ${text}`
}

function isShown(setting: string, field: string): boolean {
  return setting.length <= MOST_SHOWN && !/^(?:env|value|password)\b/.test(field)
}

function optionFlag({ long, short }: Option): string {
  return long ?? short ?? ''
}

/** True for a field that an option becomes, and for one within it. */
function covers(path: string, field: string): boolean {
  return path === field || field.startsWith(`${path}.`)
}

/**
 * A sentence with options in place of its fields: of all where it is about several, else only of those that are not
 * plain words.
 */
function withFlags(command: Command, problem: string, isAboutSeveral: boolean): string {
  const flags = flagsByField(command)
  return problem.replaceAll(/\b[a-zA-Z]+(?:\.[a-zA-Z]+)*\b/g, word => {
    if (/^[a-z]+$/.test(word) && !isAboutSeveral) return word
    // The dialects write one field in two ways: workers.max and workersMax.
    return flags.get(word) ?? (/^[a-z]+[A-Z]/.test(word) ? flagNamedAsField(command, word) : null) ?? word
  })
}
