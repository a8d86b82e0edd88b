/** The first hour of a user without a handler: `runyard init` makes one, which runs without a registry. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { temporaryFolder } from '../support/cleanup.ts'
import { ask } from '../support/client.ts'
import { root, runCommand, startServer } from '../support/server.ts'

const COMMON = ['.dockerignore', '.gitignore', 'Dockerfile', 'README.md']
const STARTERS: readonly (readonly [options: string[], files: string[]])[] = [
  [[], ['.runpod', 'handler.ts', 'node_modules', 'package.json', 'tsconfig.json', 'vendor']],
  [['--python'], ['.runpod', 'handler.py', 'requirements.txt']],
  [['--lb'], ['package.json', 'server.ts', 'tsconfig.json']],
  [
    ['--python', '--lb'],
    ['requirements.txt', 'server.py'],
  ],
]

describe('runyard init', () => {
  test('makes a folder of each kind, named as the folder', async () => {
    const home = temporaryFolder()
    for (const [options, files] of STARTERS) {
      const name = `My${options.join('')}`
      const { code, stdout, stderr } = await runCommand(['init', join(home, name), ...options])
      assert.equal(code, 0, stderr)
      assert.match(stdout, /^Made .*\n\n {2}runyard /)
      assert.deepEqual(readdirSync(join(home, name)).sort(), [...COMMON, ...files].sort())
      assert.match(readFileSync(join(home, name, 'README.md'), 'utf8'), new RegExp(`^# ${name}\n`))
      assert.equal(statSync(join(home, name)).mode & 0o055, 0o055)
    }
    const { name } = JSON.parse(readFileSync(join(home, 'My--lb/package.json'), 'utf8'))
    assert.equal(name, 'my-lb')
    assert.equal(readdirSync(home).length, STARTERS.length)
  })

  test('makes a handler in TypeScript with types and tests, and a server, that run as they are', async () => {
    const home = temporaryFolder()
    mkdirSync(join(home, 'model/.git'), { recursive: true })
    for (const args of [[join(home, 'model')], [join(home, 'deeper/api'), '--lb']]) {
      const { code, stderr } = await runCommand(['init', ...args])
      assert.equal(code, 0, stderr)
    }
    const handler = join(home, 'model/handler.ts')
    const compile = () =>
      execFileSync(join(root, 'node_modules/.bin/tsc'), [], { cwd: join(home, 'model'), encoding: 'utf8' })
    compile()
    const text = readFileSync(handler, 'utf8')
    writeFileSync(handler, text.replace('input.name', 'input.nane'))
    assert.throws(compile, ({ stdout }: { readonly stdout: string }) => /'nane' does not exist/.test(stdout))
    writeFileSync(handler, text)
    const tests = await runCommand(['test', join(home, 'model')])
    assert.equal(tests.code, 0, tests.stderr)
    assert.match(tests.stderr, /2 passed, 0 failed/)
    const args = ['--worker', join(home, 'model'), '--lb', join(home, 'deeper/api')]
    const server = await startServer({ args })
    assert.deepEqual(server.events('folder.not_set_up'), [])
    const response = await ask(server, '/lb/api/?name=Ada')
    assert.deepEqual(response.json, { message: 'Hello, Ada!' })
  })

  test('refuses a folder that is not empty, and a file, and leaves both as they are', async () => {
    const home = temporaryFolder()
    writeFileSync(join(home, 'file'), 'mine')
    for (const path of [home, join(home, 'file')]) {
      const { code, stderr } = await runCommand(['init', path])
      assert.equal(code, 64)
      assert.match(stderr, /^runyard: .* is (?:not empty|a file); name a folder that/)
    }
    assert.deepEqual(readdirSync(home), ['file'])
    const below = await runCommand(['init', join(home, 'file/below')])
    assert.equal(below.code, 74, below.stderr)
    assert.match(below.stderr, /^runyard: cannot make .*: E\w+: /)
  })
})
