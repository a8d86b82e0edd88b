/** Transfer of responses of the management API: compressed on request, and left out if nothing changed. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { openRig, type Rig } from '../../support/rig.ts'

async function get(
  rig: Rig,
  path: string,
  headers: Record<string, string>,
): Promise<{ answer: Response; body: Buffer }> {
  const answer = await rig.open(path, { headers })
  return { answer, body: Buffer.from(await answer.arrayBuffer()) }
}

test('a long response is compressed for a client that asks for it, a short one is not', async t => {
  const rig = await openRig(t)
  for (let count = 0; count < 20; count += 1) await rig.endpoint()
  const plain = await get(rig, '/v2/serverless', {})
  assert.equal(plain.answer.headers.get('content-encoding'), null)
  const packed = await get(rig, '/v2/serverless', { 'accept-encoding': 'gzip' })
  assert.equal(packed.answer.headers.get('content-encoding'), 'gzip')
  assert.match(packed.answer.headers.get('vary') ?? '', /accept-encoding/i)
  assert.ok(packed.body.byteLength < plain.body.byteLength / 5)
  assert.deepEqual(gunzipSync(packed.body), plain.body)
  const short = await get(rig, '/v2/account/secrets', { 'accept-encoding': 'gzip' })
  assert.equal(short.answer.headers.get('content-encoding'), null)
})

test('a client that has the newest state gets 304, until something changes', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint()
  const path = `/v2/serverless/${endpoint}`
  const first = await get(rig, path, {})
  const tag = first.answer.headers.get('etag') ?? ''
  assert.match(tag, /^"/)
  const same = await get(rig, path, { 'if-none-match': tag })
  assert.deepEqual([same.answer.status, same.body.byteLength], [304, 0])
  await rig.change(endpoint, { workersMax: 2 })
  const changed = await get(rig, path, { 'if-none-match': tag })
  assert.equal(changed.answer.status, 200)
  assert.notEqual(changed.answer.headers.get('etag'), tag)
})
