/** Worker SDK for workers whose folder lacks it. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, test } from 'node:test'
import { givenPackage } from '../../../src/drivers/process/given-package.ts'

const PACKAGE = join(import.meta.dirname, '../../../packages/worker')

const PATH = '/usr/local/bin:/usr/bin:/bin'
const isThere = spawnSync('node', ['--version'], { env: { PATH } }).status === 0

/** The Node of the machine, which may be as old as 20, beside the one of the repository. */
const NODES = [process.execPath, ...(isThere ? ['node'] : [])]

const IMPORTS = {
  'handler.mjs': "import * as sdk from '@runyard/worker'\nconsole.log(typeof sdk.start, sdk.own ?? 'given')\n",
  'handler.cjs': "const sdk = require('@runyard/worker')\nconsole.log(typeof sdk.start, sdk.own ?? 'given')\n",
}

function folderWith(files: Readonly<Record<string, string>>): string {
  // A path that has to be quoted in a variable.
  const folder = join(mkdtempSync(join(tmpdir(), 'runyard-given ')), 'my "model"')
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  return folder
}

function ownPackage(folder: string, main = "exports.start = () => {}\nexports.own = 'own'\n") {
  return { [`${folder}/package.json`]: '{"main": "main.js"}', [`${folder}/main.js`]: main }
}

/** The output of a file on a Node; the end of its errors where it fails. */
function printed(node: string, file: string, variables: Readonly<Record<string, string>> | null): string {
  const { stdout, stderr, status } = spawnSync(node, [file], { env: { PATH, ...variables }, encoding: 'utf8' })
  return status === 0 ? stdout.trim() : stderr
}

async function variablesOf(folder: string, words: readonly string[], env = {}, packageFolder = PACKAGE) {
  return givenPackage({ folder, words, pythonFolder: null }, packageFolder, env)
}

describe('a worker in JavaScript', () => {
  test('gets the package of the server if its folder lacks it, on each Node and in both module systems', async () => {
    const folder = folderWith({ ...IMPORTS, 'node_modules/another/package.json': '{}' })
    const copied = join(folder, 'a "copy" of it')
    symlinkSync(PACKAGE, copied)
    const variables = await variablesOf(folder, ['node', 'handler.mjs'], { NODE_OPTIONS: '--no-warnings' }, copied)
    assert.match(variables!.NODE_OPTIONS!, /^--no-warnings --require "/)
    for (const node of NODES)
      for (const name of Object.keys(IMPORTS))
        assert.equal(printed(node, join(folder, name), variables), 'function given', `${node} ${name}`)
  })

  test('keeps its own package, in its folder, above it, or where only Node finds it', async () => {
    const own = folderWith({ ...IMPORTS, ...ownPackage('node_modules/@runyard/worker') })
    assert.equal(await variablesOf(own, ['node', 'handler.mjs']), null)
    const hoisted = folderWith({ ...ownPackage('node_modules/@runyard/worker'), 'apps/one/handler.mjs': '' })
    assert.equal(await variablesOf(join(hoisted, 'apps/one'), ['node', 'handler.mjs']), null)
    const within = folderWith({
      'src/handler.cjs': IMPORTS['handler.cjs'],
      ...ownPackage('src/node_modules/@runyard/worker'),
    })
    const variables = await variablesOf(within, ['node', 'src/handler.cjs'])
    for (const node of NODES) assert.equal(printed(node, join(within, 'src/handler.cjs'), variables), 'function own')
  })

  test('sees the error of its own package where that is broken', async () => {
    const broken = ownPackage('src/node_modules/@runyard/worker', "require('./gone.js')\n")
    const folder = folderWith({ 'src/handler.cjs': IMPORTS['handler.cjs'], ...broken })
    const variables = await variablesOf(folder, ['node', 'src/handler.cjs'])
    for (const node of NODES) assert.match(printed(node, join(folder, 'src/handler.cjs'), variables), /gone\.js/)
  })

  test('gets nothing where it is in Python, or where the server has no package', async () => {
    const folder = folderWith({ 'handler.py': '' })
    for (const words of [
      ['python3', '-u', 'serve.py'],
      ['/venv/bin/python', 'x'],
      ['uv', 'run', 'handler.py'],
    ])
      assert.equal(await variablesOf(folder, words), null)
    assert.equal(await givenPackage({ folder, words: ['node', 'x.mjs'], pythonFolder: null }, null, {}), null)
  })
})
