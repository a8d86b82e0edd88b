import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { test } from 'node:test'
import { Spool, type SpooledBody } from '../../src/relay/spool.ts'

const MB = 1_048_576
const SHARER = { token: 'w', owner: 'a' }

function pieces(...sizes: number[]): Readable {
  return Readable.from(sizes.map((size, at) => Buffer.alloc(size, 97 + at)))
}

async function contentOf(kept: SpooledBody): Promise<Buffer> {
  const content = kept.read()
  return Buffer.isBuffer(content) ? content : buffer(content)
}

test('a body can be read as often as need be, whether it is in memory or in a file', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'runyard-spool-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const spool = new Spool(join(folder, 'bodies'))
  const small = await spool.receive(pieces(10, 20), MB, true, SHARER)
  assert.ok(!existsSync(join(folder, 'bodies')), 'no file for a small one')
  const large = await spool.receive(pieces(MB - 1, 10, MB), 10 * MB, true, SHARER)
  for (const [kept, sizes] of [
    [small, [10, 20]],
    [large, [MB - 1, 10, MB]],
  ] as const) {
    const whole = await buffer(pieces(...sizes))
    assert.equal(kept.bytes, whole.byteLength)
    for (let time = 0; time < 2; time += 1) assert.ok(whole.equals(await contentOf(kept)))
    assert.match(kept.digest, /^[0-9a-f]{64}$/)
  }
  assert.deepEqual(readdirSync(join(folder, 'bodies')), [], 'a file has no name, so nothing is ever left over')
  await large.drop()
  await small.drop()
  await small.drop()
})

test('of a body that is too large the first bytes are kept, and the rest is read and forgotten', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'runyard-spool-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const kept = await new Spool(folder).receive(pieces(60, 60, 60), 100, false, SHARER)
  assert.equal(kept.bytes, 100)
  assert.equal((await contentOf(kept)).byteLength, 100)
})
