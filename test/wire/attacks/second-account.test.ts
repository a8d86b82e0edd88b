/** Limits of a second account, and changes of the installation once it exists. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { temporaryFolder } from '../support/cleanup.ts'
import { ask } from '../support/client.ts'
import { root, type Server, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'
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

test('a server that has several accounts already warns at its start that their workers are not kept apart', async () => {
  const args = ['--process-root', root, '--docker', 'off']
  const dataDir = temporaryFolder()
  const warnings = (server: Server) =>
    server.lines.filter(line => line.includes('workers of one can reach what is not its own'))
  const first = await startServer({ trusting: false, dataDir, args: [...args, '--accept-shared-host'] })
  await ask(first, '/v2/account/accounts', { body: { name: 'second' } })
  await first.stop()
  assert.deepEqual(warnings(first), [])
  const second = await startServer({ trusting: false, dataDir, args })
  await until('the warning', () => warnings(second).length === 1)
  await second.stop()
  const third = await startServer({ trusting: false, dataDir, args: [...args, '--accept-shared-host'] })
  await third.stop()
  assert.deepEqual(warnings(third), [])
})
