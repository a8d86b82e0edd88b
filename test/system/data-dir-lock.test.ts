import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type DataDirLock, type HeldDataDir, lockDataDir } from '../../src/store/data-dir-lock.ts'

const INFO = { pid: 4711, url: 'http://127.0.0.1:8000' }

function makeFolder(context: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'runyard-lock-'))
  context.after(() => rmSync(folder, { recursive: true }))
  return join(folder, 'data')
}

function mine(result: DataDirLock | HeldDataDir): DataDirLock {
  assert.equal(result.held, false)
  return result as DataDirLock
}

test('a data directory belongs to one server, and others can read which', context => {
  const folder = makeFolder(context)
  const lock = mine(lockDataDir(folder))
  assert.deepEqual(lockDataDir(folder), { held: true, by: null })
  lock.publish(INFO)
  assert.deepEqual(lockDataDir(folder), { held: true, by: INFO })
  assert.equal(statSync(join(folder, 'server.json')).mode & 0o777, 0o600)
  lock.publish({ ...INFO, url: 'http://127.0.0.1:9000' })
  assert.deepEqual(lockDataDir(folder), { held: true, by: { ...INFO, url: 'http://127.0.0.1:9000' } })
  lock.release()
})

test('a directory that was given back can be taken again, and says nothing of its last holder', context => {
  const folder = makeFolder(context)
  const first = mine(lockDataDir(folder))
  first.publish(INFO)
  first.release()
  first.release()
  assert.equal(existsSync(join(folder, 'server.json')), false)
  const second = mine(lockDataDir(folder))
  assert.deepEqual(lockDataDir(folder), { held: true, by: null })
  second.release()
})

test('Git and archives of apps leave out a data directory; a file that says so is not replaced', context => {
  const folder = makeFolder(context)
  mine(lockDataDir(folder)).release()
  execFileSync('git', ['init', '--quiet', join(folder, '..')])
  writeFileSync(join(folder, 'api-key'), 'rpa_secret')
  const seen = () => execFileSync('git', ['-C', join(folder, '..'), 'status', '--porcelain'], { encoding: 'utf8' })
  assert.equal(seen(), '')
  writeFileSync(join(folder, '.gitignore'), '!*\n')
  mine(lockDataDir(folder)).release()
  assert.equal(seen(), '?? data/\n')
})

test('a file without useful content counts as missing', context => {
  const folder = makeFolder(context)
  const lock = mine(lockDataDir(folder))
  for (const text of ['', '{', 'null', '[]', '{"pid":"1","url":"x"}']) {
    writeFileSync(join(folder, 'server.json'), text)
    assert.deepEqual(lockDataDir(folder), { held: true, by: null })
  }
  lock.release()
})

test('a process has the lock until it is killed, also when it keeps nothing of it', async context => {
  const folder = makeFolder(context)
  const child = spawn(process.execPath, ['--expose-gc', join(import.meta.dirname, 'data-dir-holder.ts'), folder], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  // It would keep this file from ending when an assertion fails.
  context.after(() => void child.kill('SIGKILL'))
  const [said] = (await once(child.stdout, 'data')) as [Buffer]
  assert.equal(said.toString(), 'mine\n')
  assert.deepEqual(lockDataDir(folder), { held: true, by: { pid: child.pid, url: 'http://127.0.0.1:1' } })
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
  const lock = mine(lockDataDir(folder))
  assert.deepEqual(lockDataDir(folder), { held: true, by: null })
  lock.release()
})

test('servers that share a directory have it together, and nobody has it beside them', context => {
  const folder = makeFolder(context)
  const active = mine(lockDataDir(folder, true))
  active.publish(INFO)
  const standby = mine(lockDataDir(folder, true))
  assert.deepEqual([active.shared, standby.shared], [false, true])
  assert.deepEqual(lockDataDir(folder), { held: true, by: INFO })
  const next = { pid: 4712, url: 'http://127.0.0.1:9000' }
  standby.publish(next)
  active.release()
  assert.deepEqual(lockDataDir(folder), { held: true, by: next }, 'who is left has said that it is the one to call')
  standby.release()
  const alone = mine(lockDataDir(folder))
  assert.deepEqual(lockDataDir(folder, true), { held: true, by: null }, 'who has it alone lets nobody share')
  alone.release()
})

test('of servers that share a directory one is the first, and the next one to come once that has ended', context => {
  const folder = makeFolder(context)
  const take = () => mine(lockDataDir(folder, true))
  const [one, two] = [take(), take()]
  assert.deepEqual([one.first, two.first], [true, false])
  one.release()
  const [three, four] = [take(), take()]
  assert.deepEqual([three.first, four.first], [true, false])
  for (const lock of [two, three, four]) lock.release()
  assert.ok(mine(lockDataDir(folder)).first)
})
