import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { SetAside } from '../../src/relay/set-aside.ts'

const MB = 1_048_576

function openFolder(t: { after(action: () => void): void }): string {
  const folder = mkdtempSync(join(tmpdir(), 'runyard-set-aside-'))
  t.after(() => rmSync(folder, { recursive: true }))
  return folder
}

const bodyOf = (content: Buffer | Readable, bytes: number) => ({
  bytes,
  digest: '',
  read: () => content,
  drop: async () => {},
})
const textBody = (text: string) => bodyOf(Buffer.from(text), text.length)
const owned = (owner: string) => ({ token: `token of ${owner}`, owner })

/** A file as a relay before has left it, without the bytes. */
function leave(folder: string, name: string, owner: string, bytes: number): void {
  writeFileSync(join(folder, name), `${JSON.stringify({ owner })}\n`)
  truncateSync(join(folder, name), bytes)
}

test('a body is kept for its owner alone, from memory or from a file, behind a line that says whose it is', async t => {
  const folder = openFolder(t)
  const setAside = new SetAside(folder)
  const stream = bodyOf(Readable.from([Buffer.from('lo'), Buffer.from('ng')]), 4)
  const names = await Promise.all([
    setAside.keep(textBody('short'), owned('a'), '/v2/e/job-done/w/j'),
    setAside.keep(stream, owned('b'), '/'),
  ])
  const [first, second] = names.map(name => readFileSync(join(folder, name!), 'utf8').split('\n'))
  const { atMs, ...head } = JSON.parse(first![0]!)
  assert.deepEqual(head, { owner: 'a', url: '/v2/e/job-done/w/j', bytes: 5 })
  assert.ok(atMs > 0)
  assert.deepEqual([first![1], second![1]], ['short', 'long'])
  assert.equal(statSync(join(folder, names[0]!)).mode & 0o777, 0o600)
})

test('an account gets half of the room, and finds it again after a restart; what the operator removes is free', async t => {
  const folder = openFolder(t)
  leave(folder, 'body-1', 'mean', 500 * MB)
  const keep = (owner: string, bytes: number) =>
    new SetAside(folder).keep(bodyOf(Buffer.from('x'), bytes), owned(owner), '/')
  assert.equal(await keep('mean', 100 * MB), null)
  assert.notEqual(await keep('other', 100 * MB), null)
  rmSync(join(folder, 'body-1'))
  assert.notEqual(await keep('mean', 100 * MB), null)
})

test('a disk that does not take it leaves nothing half', async t => {
  const folder = openFolder(t)
  const broken = Readable.from(
    (async function* () {
      yield Buffer.from('half')
      throw new Error('no space is left')
    })(),
  )
  const setAside = new SetAside(folder)
  assert.equal(await setAside.keep(bodyOf(broken, 8), owned('a'), '/'), null)
  assert.deepEqual(readdirSync(folder), [])
  assert.notEqual(await setAside.keep(textBody('whole'), owned('a'), '/'), null)
})
