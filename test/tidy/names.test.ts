/** Commands, options and settings that documents and kits name exist. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Command } from 'commander'
import { commandLine } from '../../src/cli/program.ts'
import { SETTINGS } from '../../src/config/config.ts'
import { assertNone, files, read } from './files.ts'

/** Decisions describe the state at their time. */
const texts = files
  .filter(path => /\.(?:md|ya?ml|sh|service|socket|conf|tpl|txt)$/.test(path) || /^deploy\/systemd\//.test(path))
  .filter(path => !/^docs\/adr\/|^test\/|^bench\/|^docs\/site\//.test(path))
  .map(path => [path, read(path)] as const)

const program = commandLine()

/** The pages that say how `runyard` becomes a command. */
const SAYS_HOW: readonly string[] = ['README.md', 'docs/start.md']

/** The mistake in `runyard <words>`, read as far as the words are names of commands. */
function commandMistake(words: readonly string[]): string | undefined {
  let at: Command = program
  for (const word of words) {
    if (at.commands.length === 0 || !/^[a-z][a-z-]*$/.test(word)) break
    const next = at.commands.find(command => command.name() === word || command.aliases().includes(word))
    if (next === undefined) return `no command ${word} of ${at.name()}`
    at = next
  }
  const stray = words.filter(word => /^--[a-z]/.test(word)).map(word => word.replace(/[=].*$/, ''))
  const known = new Set([...optionsOf(at), '--help', '--version'])
  const unknown = stray.find(option => !known.has(option))
  return unknown === undefined ? undefined : `no option ${unknown} of ${at.name()}`
}

function optionsOf(command: Command): string[] {
  return command.options.flatMap(({ long }) => long ?? [])
}

/**
 * The commands in code of a page: behind a prompt or at the beginning of a line or of a word in backticks,
 * to the end of the command.
 */
function commandsIn(text: string): string[][] {
  const found = text.matchAll(
    /(?:`|^|\$ |exec |sudo |&& |\| )(?:\S+=\S+ )*(?:\.\/bin\/|\/opt\/runyard\/bin\/)?runyard ([^`\n|#;&]+)/gm,
  )
  return [...found].map(([, words]) => words!.split(' -- ')[0]!.trim().split(/\s+/))
}

test('documents write the command as runyard, and say once how it becomes one', () => {
  const isOther = (path: string, line: string) =>
    line.includes('./bin/runyard') || (line.includes('npx runyard') && !SAYS_HOW.includes(path))
  const mistakes = texts
    .filter(([path]) => path.endsWith('.md') && path !== 'CHANGELOG.md')
    .flatMap(([path, text]) => text.split('\n').map((line, at) => [path, line, at + 1] as const))
    .filter(([path, line]) => isOther(path, line))
    .map(([path, line, at]) => `${path}:${at} ${line}`)
  assertNone(mistakes)
})

test('commands and their options exist', () => {
  const all = texts.flatMap(([path, text]) => commandsIn(text).map(words => ({ path, words })))
  assert.ok(all.length > 300, String(all.length))
  assertNone(
    all.flatMap(({ path, words }) => {
      const mistake = commandMistake(words)
      return mistake === undefined ? [] : [`${path}: runyard ${words.join(' ')}: ${mistake}`]
    }),
  )
})

test('a command and an option that do not exist are found', () => {
  assert.equal(commandMistake(['endpoints', 'pause', '<endpoint>']), 'no command pause of endpoints')
  assert.equal(commandMistake(['why', '<job>', '--jobs']), 'no option --jobs of why')
  assert.deepEqual(commandsIn('`runyard why <job>`, ./bin/runyard\n$ ./bin/runyard top -c 1 | head'), [
    ['why', '<job>'],
    ['top', '-c', '1'],
  ])
})

/** Variables that are no settings of the server: of commands, of workers, of the kits and of the tests. */
const OTHER_VARIABLES = /^RUNYARD_(?:TEST_|CGROUP_|NO_SKIP$|SEEDS$|URL$|API_KEY$)/

test('settings exist', () => {
  const variables = new Set(Object.values(SETTINGS).map(({ variable }) => `RUNYARD_${variable}`))
  const sources = files
    .filter(path => /^(?:src|packages|deploy|scripts|examples)\/.*\.(?:ts|mjs|py|sh|yml)$/.test(path))
    .map(read)
  const stray = texts.flatMap(([path, text]) =>
    [...text.matchAll(/\bRUNYARD_[A-Z][A-Z_]*[A-Z]\b/g)]
      .map(([name]) => name)
      .filter(name => !variables.has(name) && !OTHER_VARIABLES.test(name))
      .filter(name => !sources.some(source => source.includes(name)))
      .map(name => `${path}: ${name}`),
  )
  assertNone([...new Set(stray)])
})

test('options of the server exist', () => {
  const named = new Set([program, ...allOf(program)].flatMap(optionsOf))
  const known = (option: string) =>
    named.has(option) || named.has(option.replace(/^--no-/, '--')) || OTHER_OPTIONS.includes(option)
  const stray = texts
    .filter(([path]) => /^(?:README|docs\/|ARCHITECTURE)/.test(path))
    .flatMap(([path, text]) =>
      [...text.matchAll(/`(--[a-z][a-z-]*[a-z])(?: [^`]*)?`/g)]
        .filter(([, option]) => !known(option!))
        .map(([, option]) => `${path}: no option ${option}; one of another program belongs in OTHER_OPTIONS`),
    )
  assertNone([...new Set(stray)])
})

/**
 * Options of other programs that pages name: vLLM, certbot, the installer, k3s, Helm, kubectl,
 * scripts of this repository.
 */
const OTHER_OPTIONS = [
  '--deploy-hook',
  '--enable-sleep-mode',
  '--cages',
  '--secrets-encryption',
  '--reset-then-reuse-values',
  '--reuse-values',
  '--delete-emptydir-data',
  '--force',
  '--ignore-daemonsets',
  '--grace-period',
  '--base',
  '--repository',
  '--rate',
  '--kill-every',
  '--clock-step',
  '--python',
  '--pair',
  '--verbose',
]

function allOf(command: Command): Command[] {
  return command.commands.flatMap(one => [one, ...allOf(one)])
}
