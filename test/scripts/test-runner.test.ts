import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'

const RUNNER = join(import.meta.dirname, '..', '..', 'scripts', 'test.ts')
const PASSES = "test('it holds', () => {})"
const FAILS = "test('it never holds', () => assert.fail('as always'))"
/** Fails in its first run and leaves a file behind, which lets the next run pass. */
const FAILS_ONCE = `test('it holds at last', () => {
  const mark = import.meta.filename + '.mark'
  if (existsSync(mark)) return
  writeFileSync(mark, '')
  assert.fail('the first time')
})`

const folders: string[] = []
after(() => {
  for (const folder of folders) rmSync(folder, { recursive: true })
})

/** Runs the test command in a folder with the given test files. */
function runTests(files: Readonly<Record<string, string>>, ...options: string[]) {
  return runTestsWith({}, files, ...options)
}

/** The same with variables. */
function runTestsWith(
  variables: Readonly<Record<string, string>>,
  files: Readonly<Record<string, string>>,
  ...options: string[]
) {
  const folder = mkdtempSync(join(tmpdir(), 'runyard-runner-'))
  folders.push(folder)
  for (const [path, body] of Object.entries(files)) {
    mkdirSync(join(folder, dirname(path)), { recursive: true })
    const imports =
      "import { test } from 'node:test'; import assert from 'node:assert'; import { existsSync, writeFileSync } from 'node:fs'"
    writeFileSync(join(folder, path), `${imports}\n${body}`)
  }
  const {
    RUNYARD_TEST_DOCKER: _engine,
    RUNYARD_NO_SKIP: _strict,
    RUNYARD_TEST_READY: _ready,
    NODE_TEST_CONTEXT: _context,
    ...env
  } = process.env
  const { status, stdout, stderr } = spawnSync(process.execPath, [RUNNER, ...options, 'test'], {
    cwd: folder,
    encoding: 'utf8',
    // No test here starts a server, so the server is not built.
    env: { ...env, RUNYARD_TEST_PROGRAM: 'none', ...variables },
  })
  return { status, stdout, stderr, lastLine: stdout.trimEnd().split('\n').at(-1) }
}

test('a run whose tests pass ends well and closes with their number', () => {
  const { status, lastLine } = runTests({ 'test/core/a.test.ts': PASSES, 'test/wire/b.test.ts': PASSES })
  assert.equal(lastLine, '2 passed, 0 failed, 0 skipped')
  assert.equal(status, 0)
})

test('a file of test/wire that fails twice fails the run', () => {
  const { status, stdout, lastLine } = runTests({ 'test/wire/a.test.ts': FAILS, 'test/wire/b.test.ts': PASSES })
  assert.match(stdout, /once more, alone: test\/wire\/a\.test\.ts/)
  assert.match(stdout, /^failed: test\/wire\/a\.test\.ts$/m)
  assert.equal(lastLine, '1 passed, 1 failed, 0 skipped')
  assert.equal(status, 1)
})

test('a file of test/wire that passes when it runs alone is named as unsteady, with what failed first', () => {
  const { status, stdout, lastLine } = runTests({ 'test/wire/a.test.ts': FAILS_ONCE })
  assert.match(stdout, /^unsteady: test\/wire\/a\.test\.ts$/m)
  assert.match(stdout, /first run of test\/wire\/a\.test\.ts[\s\S]*the first time[\s\S]*^unsteady/m)
  assert.equal(lastLine, '1 passed, 0 failed, 0 skipped')
  assert.equal(status, 0)
})

test('a file whose only suite is skipped has not failed', () => {
  const skipped = "test.suite('needs Python', { skip: 'there is no Python' }, () => { test('it holds', () => {}) })"
  const { status, stdout, lastLine } = runTests({ 'test/wire/a.test.ts': skipped, 'test/core/b.test.ts': PASSES })
  assert.match(stdout, /^skipped: needs Python: there is no Python$/m)
  assert.equal(lastLine, '1 passed, 0 failed, 1 skipped')
  assert.equal(status, 0)
})

test('a file of any folder in which time has a say runs again, others have one try', () => {
  const driver = runTests({ 'test/drivers/a.test.ts': FAILS_ONCE })
  assert.match(driver.stdout, /^unsteady: test\/drivers\/a\.test\.ts$/m)
  assert.equal(driver.status, 0)
  const core = runTests({ 'test/core/a.test.ts': FAILS_ONCE })
  assert.equal(core.lastLine, '0 passed, 1 failed, 0 skipped')
  assert.equal(core.status, 1)
})

test('more than a handful of unsteady files are said to be of a busy machine, and pass', () => {
  const names = ['a', 'b', 'c', 'd'].map(name => `test/wire/${name}.test.ts`)
  const { status, stdout } = runTests(Object.fromEntries(names.map(name => [name, FAILS_ONCE])))
  for (const name of names) assert.match(stdout, new RegExp(`^unsteady: ${name}$`, 'm'))
  assert.match(
    stdout,
    /^this machine is busy: the 4 unsteady files failed beside others and passed alone; load [\d.]+ on \d+ processors$/m,
  )
  assert.equal(status, 0)
})

test('after three files that fail alone, too, no file runs again', () => {
  const names = ['a', 'b', 'c', 'd'].map(name => `test/wire/${name}.test.ts`)
  const { status, stdout } = runTests(Object.fromEntries(names.map(name => [name, FAILS])))
  assert.equal(stdout.match(/^once more, alone: /gm)?.length, 3)
  assert.equal(stdout.match(/^failed: /gm)?.length, 4)
  assert.equal(stdout.match(/^failed: test\/wire\/\w\.test\.ts \(not run again\)$/gm)?.length, 1)
  assert.equal(status, 1)
})

test('pure tests run while programs are installed, and the others get the variables that name these', () => {
  const folder = mkdtempSync(join(tmpdir(), 'runyard-ready-'))
  folders.push(folder)
  const ready = join(folder, 'ready')
  const { stdout, lastLine, status } = runTestsWith(
    { RUNYARD_TEST_READY: ready },
    {
      'test/core/a.test.ts': `test('installs', () => writeFileSync(${JSON.stringify(ready)}, 'RUNYARD_TEST_HELM=a=b\\n'))`,
      'test/wire/b.test.ts': "test('has it', () => assert.equal(process.env.RUNYARD_TEST_HELM, 'a=b'))",
    },
  )
  assert.equal(lastLine, '2 passed, 0 failed, 0 skipped', stdout)
  assert.equal(status, 0)
})

test('a run ends with an error when the installation of its programs was given up', () => {
  const files = { 'test/wire/a.test.ts': PASSES }
  const { stderr, status } = runTestsWith({ RUNYARD_TEST_READY: '/missing/ready' }, files)
  assert.match(stderr, /no programs are installed for tests: \/missing is missing/)
  assert.equal(status, 1)
})

test('--grep runs the tests of that name alone', () => {
  const { status, lastLine } = runTests({ 'test/core/a.test.ts': `${PASSES}\n${FAILS}` }, '--grep', '^it holds')
  assert.equal(lastLine, '1 passed, 0 failed, 0 skipped')
  assert.equal(status, 0)
})

test('files in which --grep finds no test are ignored, and a run without any test fails', () => {
  const files = { 'test/core/a.test.ts': PASSES, 'test/core/b.test.ts': FAILS }
  assert.equal(runTests(files, '--grep', '^it holds').lastLine, '1 passed, 0 failed, 0 skipped')
  const none = runTests(files, '--grep', 'it might hold')
  assert.equal(none.lastLine, '0 passed, 0 failed, 0 skipped')
  assert.equal(none.status, 1)
})

test('a file without a test fails', () => {
  const { status, stdout } = runTests({ 'test/core/a.test.ts': PASSES, 'test/core/b.test.ts': '' })
  assert.match(stdout, /^failed: test\/core\/b\.test\.ts$/m)
  assert.equal(status, 1)
})

test('of files that share a process each counts, and those that fail, have no test or cannot be loaded are named', () => {
  const { status, stdout, lastLine } = runTests({
    'test/app/a.test.ts': `${PASSES}\ntest.skip('some day', () => {})`,
    'test/app/b.test.ts': FAILS,
    'test/core/c.test.ts': '',
    'test/core/d.test.ts': "import './nowhere.ts'",
    'test/core/e.test.ts': PASSES,
  })
  assert.match(stdout, /^failed: .*test\/app\/b\.test\.ts, .*test\/core\/c\.test\.ts, .*test\/core\/d\.test\.ts$/m)
  assert.equal(lastLine, '2 passed, 2 failed, 1 skipped')
  assert.equal(status, 1)
})

test('a process that ends in the middle of its tests fails', () => {
  const { status } = runTests({ 'test/app/a.test.ts': PASSES, 'test/core/b.test.ts': 'process.exit(0)' })
  assert.equal(status, 1)
})

test('--list names the files and runs nothing', () => {
  const { status, stdout } = runTests({ 'test/core/a.test.ts': FAILS, 'test/wire/b.test.ts': FAILS }, '--list')
  assert.equal(stdout, 'wire:\n  test/wire/b.test.ts\npure:\n  test/core/a.test.ts\n')
  assert.equal(status, 0)
})

test('an option that does not exist, and a folder without tests, are mistakes in the arguments', () => {
  const files = { 'test/core/a.test.ts': PASSES }
  assert.match(runTests(files, '--grap').stderr, /Unknown option '--grap'/)
  assert.equal(runTests(files, '--grap').status, 64)
  assert.equal(runTests({ 'src/a.ts': '' }).stderr.startsWith('no test file matches'), true)
})
