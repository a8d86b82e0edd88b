/** Whoever can write the database, but has no encryption key, cannot hand one row's secret to another. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { temporaryFolder } from '../support/cleanup.ts'
import { ask, graphql } from '../support/client.ts'
import { until } from '../support/until.ts'
import { inContainers } from '../support/workers.ts'
import { startProbedServer } from './probed-server.ts'

const skip = inContainers ? 'is about processes' : false

test('a secret whose sealed text was swapped with another does not open, and why says so', { skip }, async () => {
  const dataDir = temporaryFolder()
  const args = ['--sample', '--docker', 'off']
  const first = await startProbedServer({ trusting: false, dataDir, args })
  for (const name of ['mine', 'theirs']) {
    const made = await ask(first, '/v2/account/secrets', { body: { name, value: `value of ${name}` } })
    assert.ok(made.status < 300, made.text)
  }
  await first.stop()
  const db = new DatabaseSync(join(dataDir, 'runyard.sqlite'))
  const rows = db.prepare('SELECT id, sealed FROM secrets ORDER BY name').all() as { id: string; sealed: string }[]
  const [mine, theirs] = rows as [(typeof rows)[0], (typeof rows)[0]]
  const put = db.prepare('UPDATE secrets SET sealed = ? WHERE id = ?')
  put.run(theirs.sealed, mine.id)
  put.run(mine.sealed, theirs.id)
  db.close()
  const second = await startProbedServer({ trusting: false, dataDir, args })
  const { myself } = await graphql(second, '{ myself { endpoints { id name } } }')
  const [{ id, name }] = myself.endpoints
  const input = { id, name, workersMin: 1, env: [{ key: 'S', value: '{{ RUNPOD_SECRET_mine }}' }] }
  await graphql(second, 'mutation($input: EndpointInput!) { saveEndpoint(input: $input) { id } }', { input })
  const failed = await until('a failed start', () => second.events('worker.start_failed')[0] ?? false)
  assert.match(String(failed.problem), /was changed, moved from another row, or sealed with another encryption key/)
  await second.stop()
})
