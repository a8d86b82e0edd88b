/** Help of every command, on a terminal of 80 columns. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Command } from 'commander'
import { SERVE_OPTION_GROUPS } from '../../src/cli/commands/serve-option-groups.ts'
import { commandLine } from '../../src/cli/program.ts'
import { SETTINGS } from '../../src/config/config.ts'

function allOf(command: Command): Command[] {
  return [command, ...command.commands.flatMap(allOf)]
}

function nameOf(command: Command): string {
  return command.parent === null ? command.name() : `${nameOf(command.parent)} ${command.name()}`
}

/** What `--help` prints, with the text after the options. */
function helpOf(command: Command): string {
  const parts: string[] = []
  command.configureOutput({ writeOut: part => void parts.push(part), getOutHelpWidth: () => 80 })
  command.outputHelp()
  return parts.join('')
}

test('the help of each command fits 80 columns', () => {
  const commands = allOf(commandLine())
  assert.ok(commands.length > 60, String(commands.length))
  const wide = commands.flatMap(command =>
    helpOf(command)
      .split('\n')
      .filter(line => line.length > 80)
      .map(line => `${nameOf(command)}: ${line}`),
  )
  assert.deepEqual(wide, [])
})

test('each command, option and argument is described', () => {
  const bare = allOf(commandLine()).flatMap(command => [
    ...(command.description() === '' ? [nameOf(command)] : []),
    ...command.options
      .filter(({ description }) => description === '')
      .map(({ flags }) => `${nameOf(command)} ${flags}`),
  ])
  assert.deepEqual(bare, [])
})

test('each option of serve is in one group of its help', () => {
  const grouped = SERVE_OPTION_GROUPS.flatMap(([, flags]) => flags)
  const flags = Object.values(SETTINGS).map(({ flag }) => flag)
  assert.deepEqual([...grouped].sort(), [...flags].sort())
})
