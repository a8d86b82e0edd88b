/** Questions before something that cannot be taken back. */
import { createInterface } from 'node:readline/promises'
import type { Command } from 'commander'
import { CliError, EXIT } from '../exit.ts'

/** The option that answers a question. */
export interface YesOption {
  readonly yes?: boolean
}

/** Adds the option `--yes`. */
export function withYes(command: Command): Command {
  return command.option('-y, --yes', 'do not ask')
}

/** Asks on a terminal. @throws CliError for any answer but yes, and where nobody can be asked */
export async function agree(question: string): Promise<void> {
  if (process.stdin.isTTY !== true)
    throw new CliError(`${question.replace('; go on?', '')}; say --yes to do it`, EXIT.usage)
  const reader = createInterface({ input: process.stdin, output: process.stderr })
  const answer = await reader.question(`${question} [y/N] `)
  reader.close()
  if (!/^y(?:es)?$/i.test(answer.trim())) throw new CliError('nothing was changed', EXIT.usage)
}

/**
 * Asks before something is deleted, where a person is at the terminal; a script goes on.
 * @param loss names the deleted resource and everything lost with it; called only before a question
 * @throws CliError for any answer but yes
 */
export async function agreeToDelete({ yes }: YesOption, loss: () => Promise<string>): Promise<void> {
  if (yes === true || process.stdin.isTTY !== true || process.stderr.isTTY !== true) return
  await agree(`${await loss()}; go on?`)
}
