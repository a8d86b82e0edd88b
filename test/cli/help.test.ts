/** Help of every command, on a terminal of 80 columns. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import type { Command } from 'commander'
import { SERVE_OPTION_GROUPS } from '../../src/cli/commands/serve-option-groups.ts'
import { commandLine } from '../../src/cli/program.ts'
import { SETTINGS } from '../../src/config/config.ts'
import { runAlone } from '../support/command-line.ts'

function listCommands(command: Command): Command[] {
  return [command, ...command.commands.flatMap(listCommands)]
}

function commandTitle(command: Command): string {
  return command.parent === null ? command.name() : `${commandTitle(command.parent)} ${command.name()}`
}

/** Output of `--help`, with the text after the options. */
function helpText(command: Command): string {
  const parts: string[] = []
  command.configureOutput({ writeOut: part => void parts.push(part), getOutHelpWidth: () => 80 })
  command.outputHelp()
  return parts.join('')
}

test('the help of each command fits 80 columns', () => {
  const commands = listCommands(commandLine())
  assert.ok(commands.length > 60, String(commands.length))
  const wide = commands.flatMap(command =>
    helpText(command)
      .split('\n')
      .filter(line => line.length > 80)
      .map(line => `${commandTitle(command)}: ${line}`),
  )
  assert.deepEqual(wide, [])
})

test('each command, option and argument is described', () => {
  const bare = listCommands(commandLine()).flatMap(command => [
    ...(command.description() === '' ? [commandTitle(command)] : []),
    ...command.options
      .filter(({ description }) => description === '')
      .map(({ flags }) => `${commandTitle(command)} ${flags}`),
  ])
  assert.deepEqual(bare, [])
})

test('the help of serve fits one screen, and --help-all has each option with its whole description', async () => {
  const short = (await runAlone('serve', '--help')).stdout
  assert.ok(short.trimEnd().split('\n').length <= 40, short)
  assert.ok(short.includes('--help-all'))
  const { code, stdout } = await runAlone('serve', '--help-all')
  assert.equal(code, 0)
  const flat = stdout.replaceAll(/\s+/g, ' ')
  const missing = Object.values(SETTINGS).filter(({ flag, help }) => !flat.includes(flag) || !flat.includes(help))
  assert.deepEqual(
    missing.map(({ flag }) => flag),
    [],
  )
  const wide = stdout.split('\n').filter(line => line.length > 80)
  assert.deepEqual(wide, [])
  // One after the other: the long one does not stay.
  assert.equal((await runAlone('serve', '--help')).stdout, short)
})

test('the help of each command but the program and its longest fits one screen, in plain text', () => {
  const long = listCommands(commandLine()).flatMap(command => {
    const text = helpText(command)
    assert.equal(stripVTControlCharacters(text), text)
    return text.trimEnd().split('\n').length > 50 ? [commandTitle(command)] : []
  })
  assert.deepEqual(long, ['runyard', 'runyard doctor'])
})

test('each option of serve is in one group of its help', () => {
  const grouped = SERVE_OPTION_GROUPS.flatMap(([, flags]) => flags)
  const flags = Object.values(SETTINGS).map(({ flag }) => flag)
  assert.deepEqual([...grouped].sort(), [...flags].sort())
})
