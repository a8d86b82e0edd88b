/** Commands with their own messages about wrong arguments. */
import { Command } from 'commander'
import { nearest } from '../core/nearest.ts'
import { flagNamedAsField } from './client/option-fields.ts'
import { CliError, EXIT } from './exit.ts'

/** Wrong arguments of a command. */
export class UsageError extends CliError {
  readonly command: Command
  /** The name of the argument that is missing; null for another mistake. */
  readonly missing: string | null

  constructor(message: string, command: Command, missing: string | null = null) {
    super(`${message}\n${usageLine(command)}`, EXIT.usage)
    this.command = command
    this.missing = missing
  }
}

/** A command whose mistakes are {@link UsageError}s. Its subcommands are of this kind, too. */
export class CliCommand extends Command {
  override createCommand(name?: string): Command {
    return new CliCommand(name)
  }

  override error(message: string, { code = '' }: { code?: string } = {}): never {
    // The usage names a missing option beside an argument, too.
    const isIncomplete = code === 'commander.missingArgument' || code === 'commander.missingMandatoryOptionValue'
    if (isIncomplete && missingArgument(this) !== null) throw missingArgument(this)
    if (code === 'commander.unknownCommand') throw unknownCommand(this, this.args[0] ?? '')
    if (code === 'commander.excessArguments') throw excessArgument(this)
    if (code === 'commander.unknownOption') throw unknownOption(this, joinSentence(message))
    if (code === 'commander.missingMandatoryOptionValue')
      throw missingOption(this) ?? new UsageError(joinSentence(message), this)
    throw new UsageError(joinSentence(message), this)
  }
}

/** The full name of a command, as it is typed. */
export function commandName(command: Command): string {
  return ['runyard', ...commandPath(command)].join(' ')
}

/** The names of a command and of the groups that it is in, without that of the program. */
export function commandPath(command: Command): string[] {
  return command.parent === null ? [] : [...commandPath(command.parent), command.name()]
}

/** The call of a command, on one line. */
function usageLine(command: Command): string {
  return `Usage: ${commandName(command)} ${command.usage()}`
}

function missingArgument(command: Command): UsageError | null {
  const missing = command.registeredArguments.filter(({ required }) => required)[command.args.length]
  if (missing === undefined) return null
  const about = missing.description === '' ? '' : `: ${missing.description}`
  return new UsageError(`${commandPath(command).join(' ')} needs <${missing.name()}>${about}`, command, missing.name())
}

function missingOption(command: Command): UsageError | null {
  const missing = command.options.find(
    option => option.mandatory && command.getOptionValue(option.attributeName()) === undefined,
  )
  if (missing === undefined) return null
  const flag = missing.flags.replace(/^-\w, /, '')
  return new UsageError(`${commandPath(command).join(' ')} needs ${flag}: ${missing.description}`, command)
}

function unknownCommand(group: Command, word: string): UsageError {
  const visible = group.createHelp().visibleCommands(group)
  const names = visible.map(command => command.name()).filter(name => name !== 'help')
  const close = nearest(word, [...names, ...visible.flatMap(command => command.aliases())])
  const hint = close === null ? '' : `; did you mean ${commandName(group)} ${close}?`
  // The program has too many commands for a line; its help groups them.
  const list = group.parent === null ? 'runyard --help lists the commands' : `there are ${names.join(', ')}`
  const who = group.parent === null ? 'there is' : `${commandPath(group).join(' ')} has`
  return new UsageError(`${who} no command '${word}'${hint === '' ? `; ${list}` : hint}`, group)
}

/** A word too many: an unknown command, where the group chose this one by default. */
function excessArgument(command: Command): UsageError {
  const word = command.args[command.registeredArguments.length] ?? ''
  const group = command.parent
  const isNamed = group?.args.some(given => [command.name(), ...command.aliases()].includes(given)) === true
  if (group !== null && !isNamed) return unknownCommand(group, word)
  const name = commandPath(command).join(' ')
  const hasName = command.registeredArguments.length === 0 && command.options.some(({ long }) => long === '--name')
  if (hasName) return new UsageError(`${name} takes a name with its option: --name ${word}`, command)
  return new UsageError(`${name} takes no ${command.args.length > 1 ? 'further ' : ''}argument '${word}'`, command)
}

/**
 * The library suggests options of a similar spelling; the name of a field of the API means the option that sets it.
 */
function unknownOption(command: Command, problem: string): UsageError {
  const typed = /^unknown option '--([\w-]{1,60})'$/.exec(problem)?.[1]
  const option = typed === undefined ? null : flagNamedAsField(command, typed)
  return new UsageError(option === null ? problem : `${problem}; did you mean ${option}?`, command)
}

/** A message of the library without its prefix "error: " and without its suggestion on a second line. */
function joinSentence(message: string): string {
  const [said = '', hint] = message.replace(/^error: /, '').split('\n')
  if (hint === undefined) return said
  return `${said}; ${hint.slice(1, -1).replace(/^D/, 'd')}`
}
