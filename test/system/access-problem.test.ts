/** Files and folders that may not be entered, read or changed, as seen by a user without all rights. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const NOBODY = 65_534
const isRoot = process.getuid?.() === 0
const user = isRoot ? { uid: NOBODY, gid: NOBODY } : {}
const module = fileURLToPath(new URL('../../src/disk/access-problem.ts', import.meta.url))
const skip = spawnSync('test', ['-r', module], user).status === 0 ? false : 'nobody cannot read this clone'

/** The results of calls of the module in a process of that user. */
function results(calls: readonly (readonly [name: string, path: string, use: string])[]): (string | null)[] {
  const program = `const found = await import(${JSON.stringify(module)})
console.log(JSON.stringify(${JSON.stringify(calls)}.map(([name, path, use]) => found[name](path, use))))`
  const words = ['--input-type=module', '-e', program]
  const { stdout, stderr } = spawnSync(process.execPath, words, { ...user, encoding: 'utf8', cwd: '/' })
  return JSON.parse(stdout === '' ? assert.fail(stderr) : stdout)
}

test('the first obstacle on the path is named, through links, and a missing file is not a problem', { skip }, t => {
  const folder = mkdtempSync(join(tmpdir(), 'runyard-access-'))
  t.after(() => {
    for (const name of ['closed', 'data/lost+found']) chmodSync(join(folder, name), 0o700)
    rmSync(folder, { recursive: true })
  })
  chmodSync(folder, 0o755)
  const at = (...names: string[]) => join(folder, ...names)
  for (const name of ['closed', 'own', 'data']) mkdirSync(at(name))
  mkdirSync(at('data', 'volumes'))
  mkdirSync(at('data', 'lost+found'))
  for (const name of ['notes.txt', 'secret', 'data/runyard.sqlite']) writeFileSync(at(name), '')
  symlinkSync(at('closed', 'python'), at('own', 'python'))
  symlinkSync('loop', at('loop'))
  if (isRoot) for (const path of ['own', 'data', 'data/runyard.sqlite']) chownSync(at(path), NOBODY, NOBODY)
  const closedMode = isRoot ? 0o700 : 0
  chmodSync(at('closed'), closedMode)
  chmodSync(at('secret'), 0)
  chmodSync(at('data', 'lost+found'), closedMode)
  chmodSync(at('data', 'volumes'), 0o555)
  const found = results([
    ['accessProblem', at('closed', 'deep', 'er'), 'write'],
    ['accessProblem', at('own', 'python'), 'read'],
    ['accessProblem', at('secret'), 'read'],
    ['accessProblem', at('own', 'new', 'folder'), 'write'],
    ['accessProblem', at('own', 'missing'), 'read'],
    ['accessProblem', at('notes.txt', 'below'), 'write'],
    ['accessProblem', at('loop'), 'read'],
    ['dataDirProblem', at('data'), 'read'],
    ['dataDirProblem', at('data'), 'write'],
  ])
  const says = (path: string, done: string, mode: string) =>
    new RegExp(
      `^${path} may not be ${done} \\(EACCES\\): it belongs to .*\\(uid \\d+\\), with mode ${mode}, and this user is `,
    )
  const closed = says(at('closed'), 'entered', isRoot ? '700' : '000')
  assert.match(found[0] ?? '', closed)
  assert.match(found[1] ?? '', closed)
  assert.match(found[2] ?? '', says(at('secret'), 'read', '000'))
  assert.deepEqual(found.slice(3, 8), [null, null, null, null, null])
  assert.match(found[8] ?? '', says(at('data', 'volumes'), 'changed', '555'))
})
