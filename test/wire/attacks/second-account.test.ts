/** What a second account may not do, and what changes for the installation when there is one. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ask } from '../support/client.ts'
import { startProbedServer } from './probed-server.ts'

test('only a key of the operator with all rights makes an account, and without workers of the machine it needs no consent', async () => {
  const server = await startProbedServer({ trusting: false, args: ['--processes', 'off', '--docker', 'off'] })
  const post = (key: string, path: string, body: object) => ask({ url: server.url, apiKey: key }, path, { body })
  server.forgetHolds()
  const made = await post(server.apiKey, '/v2/account/accounts', { name: 'second' })
  assert.equal(made.status < 300, true, made.text)
  const scope = { type: 'restricted', management: 'write', jobs: 'write' }
  const keys = await Promise.all(
    [{ account: made.json.id }, { scope }].map(more => post(server.apiKey, '/v2/account/keys', { name: 'k', ...more })),
  )
  for (const { json } of keys) {
    const { status } = await post(json.key, '/v2/account/accounts', { name: 'third' })
    assert.equal(status, 403)
  }
  server.assertNeverHeld()
  await server.stop()
})
