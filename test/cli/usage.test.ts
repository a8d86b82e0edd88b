/** Wrong commands and arguments: the mistake, the usage, and the nearest name. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { Command } from 'commander'
import { readHubTests } from '../../src/cli/hub-tests.ts'
import { commandLine } from '../../src/cli/program.ts'
import { runAlone } from '../support/command-line.ts'

function listGroups(command: Command): Command[] {
  return command.commands.length === 0 ? [] : [command, ...command.commands.flatMap(listGroups)]
}

function commandWords(command: Command): string[] {
  return command.parent === null ? [] : [...commandWords(command.parent), command.name()]
}

function temporaryFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'usage-'))
  t.after(() => rmSync(folder, { recursive: true }))
  return folder
}

async function said(...words: string[]): Promise<string[]> {
  const { code, stdout, stderr } = await runAlone(...words)
  assert.deepEqual([code, stdout], [64, ''], stderr)
  return stderr.trimEnd().split('\n')
}

test('a mistyped command is named with the nearest one, in each group', async () => {
  const groups = listGroups(commandLine())
  assert.ok(groups.length > 12)
  for (const group of groups) {
    for (const command of group.createHelp().visibleCommands(group)) {
      const name = command.name()
      if (name === 'help') continue
      // The second half of `accept` as in `accpet`.
      const mistyped = `${name.slice(0, -2)}${name.at(-1)}${name.at(-2)}`
      if (group.commands.some(one => one.name() === mistyped)) continue
      const words = commandWords(group)
      const [first = '', usage = ''] = await said(...words, mistyped)
      const nearest = first.split('did you mean ')[1]
      assert.ok(first.includes(`no command '${mistyped}'`), first)
      assert.ok(nearest?.startsWith(['runyard', ...words, ''].join(' ')) === true, first)
      assert.ok(usage.startsWith(['Usage: runyard', ...words].join(' ')) === true, usage)
    }
  }
})

test('a word that is near to no command lists those of its group', async () => {
  const [first] = await said('jobs', 'xyzzy')
  assert.match(first!, /^runyard: jobs has no command 'xyzzy'; there are list, create, get, /)
  const [root] = await said('xyzzy')
  assert.equal(root, "runyard: there is no command 'xyzzy'; runyard --help lists the commands")
})

test('an argument too many of a command that was chosen by itself is taken for a command, with options before it or not', async () => {
  for (const words of [['accpet'], ['--json', 'accpet']]) {
    const [first] = await said('clock', ...words)
    assert.equal(first, "runyard: clock has no command 'accpet'; did you mean runyard clock accept?")
  }
  const [first] = await said('clock', 'show', 'accept')
  assert.equal(first, "runyard: clock show takes no argument 'accept'")
})

test('an unknown option is named with the nearest one, also of those that only --help-all prints', async () => {
  assert.equal(
    (await said('serve', '--kubernets'))[0],
    "runyard: unknown option '--kubernets'; did you mean --kubernetes?",
  )
  assert.equal(
    (await said('endpoints', 'update', 'mine', '--workers-max', '3'))[0],
    "runyard: unknown option '--workers-max'; did you mean --max?",
  )
  assert.equal((await said('endpoints', 'list', '--jsn'))[0], "runyard: unknown option '--jsn'; did you mean --json?")
})

test('each command without an argument that it needs shows its usage and what it needs, without a server', async () => {
  const all = (command: Command): Command[] => [command, ...command.commands.flatMap(all)]
  const needing = all(commandLine()).filter(({ registeredArguments: [first] }) => first?.required === true)
  assert.ok(needing.length > 50)
  for (const command of needing) {
    const words = commandWords(command)
    const argument = command.registeredArguments[0]!.name()
    const lines = await said(
      ...words,
      ...(command.options.some(({ long }) => long === '--url') ? ['--url', 'http://127.0.0.1:1'] : []),
    )
    assert.ok(lines[0]?.startsWith(`runyard: ${words.join(' ')} needs <${argument}>: `), String(lines[0]))
    assert.equal(lines[1], `Usage: runyard ${words.join(' ')} ${command.usage()}`)
    assert.equal(lines.at(-1), `runyard ${words.join(' ')} --help shows its options`)
  }
})

test('a name in the place of an argument is refused with its option', async () => {
  assert.equal(
    (await said('secrets', 'create', 'token'))[0],
    'runyard: secrets create takes a name with its option: --name token',
  )
})

test('an option that a command needs is named with what it takes, and the usage', async () => {
  const [first, usage] = await said('restore', 'a.backup')
  assert.equal(first, 'runyard: restore needs --data-dir <folder>: an empty or new folder')
  assert.match(usage!, /^Usage: runyard restore /)
  const [run] = await said('run', 'my-model')
  assert.match(run!, /^runyard: run needs --input <json>: the input as JSON, such as '{"n": 1}', @file or - for/)
})

test('serve with a folder or a handler as its argument names --worker', async t => {
  const folder = temporaryFolder(t)
  const handler = join(folder, 'handler.py')
  writeFileSync(handler, '')
  const expected = `; did you mean --worker ${folder}? A command goes behind --`
  assert.equal((await said('serve', folder))[0], `runyard: serve takes no argument '${folder}'${expected}`)
  assert.equal((await said('serve', handler))[0], `runyard: serve takes no argument '${handler}'${expected}`)
  const [other] = await said('serve', 'no-such-folder')
  assert.equal(
    other,
    "runyard: serve takes no argument 'no-such-folder'; a folder goes behind --worker, a command behind --",
  )
})

test('test of a folder without tests shows what a file of tests has in it, and says where the folder is missing', async t => {
  const folder = temporaryFolder(t)
  const none = await runAlone('test', folder)
  assert.equal(none.code, 66)
  assert.match(none.stderr, /^runyard: there is no .*tests\.json; put jobs into it, such as {"tests": \[.*\]}\n$/)
  const example = none.stderr.split('such as ')[1]!
  assert.equal('mistakes' in readHubTests(example), false)
  const missing = join(folder, 'missing')
  const { code, stderr } = await runAlone('test', missing)
  assert.deepEqual([code, stderr], [66, `runyard: there is no folder ${missing}\n`])
})

test('serve refuses --watch without a folder to watch', async t => {
  const { code, stderr } = await runAlone('serve', '--watch', '--port', '0', '--data-dir', temporaryFolder(t))
  assert.deepEqual(
    [code, stderr],
    [69, 'runyard: --watch follows changes in the folders of --worker and --lb; name one\n'],
  )
})

test('serve with a number as its argument, as npm start --port gives one, names --port behind npm start', async () => {
  assert.equal(
    (await said('serve', '8081'))[0],
    "runyard: serve takes no argument '8081'; a port goes behind --port: npm start -- --port 8081",
  )
})

test('init prints commands that can be pasted, for a folder whose name has spaces too', async t => {
  const folder = join(temporaryFolder(t), "My Model's")
  const { code, stdout, stderr } = await runAlone('init', folder, '--lb')
  assert.equal(code, 0, stderr)
  const quoted = `'${folder.replace("'", "'\\''")}'`
  assert.ok(stdout.includes(`  runyard serve --lb ${quoted}  `), stdout)
})
