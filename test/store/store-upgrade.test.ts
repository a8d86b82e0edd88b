/** What an earlier version has written is read by this one. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { DEFAULT_OWNER, type EndpointId, type OwnerId, type TemplateId } from '../../src/core/ids.ts'
import { openSqliteStore } from '../../src/store/engines/sqlite.ts'
import { SqliteEngine } from '../../src/store/engines/sqlite-engine.ts'
import { initial } from '../../src/store/schema/0001-initial.ts'

const ROWS = [
  `INSERT INTO templates VALUES ('t1', 'owner', 'mine', 1, 5, '{"image":"i","args":"","diskGb":1,"volumeGb":0,
    "volumeMountPath":"/w","env":{},"ports":[],"readme":"","isServerless":true,"registry":"gone"}')`,
  `INSERT INTO endpoints VALUES ('e1', 'owner', 'mine', 't1', 7, 0, 3, 5, '{"type":"QUEUE","compute":{"kind":"cpu",
    "configs":[{"flavor":"cpu3g","vcpuCount":2}]},"idleTimeoutS":10,"scaler":{"type":"QUEUE_DELAY","queueDelayS":4},
    "locations":[],"networkVolumeIds":["gone"],"executionTimeoutMs":600000,"flashboot":"OFF","env":{}}')`,
  `INSERT INTO endpoint_counters VALUES ('e1', 'owner', 0, 0, 0, NULL)`,
  `INSERT INTO secrets VALUES ('s1', 'owner', 'one', NULL, 5, 'sealed')`,
  ...[
    ['main', '{"management":"write","jobs":"write","endpoints":null}'],
    ['reader', '{"management":"read","jobs":"read","endpoints":null}'],
    ['one', '{"management":"none","jobs":"write","endpoints":["e1"]}'],
  ].map(
    ([name, scope], n) =>
      `INSERT INTO api_keys VALUES ('k${n}', 'owner', '${name}', 'h${n}', '${scope}', 0, 0, NULL, ${n})`,
  ),
]

test('templates, endpoints, secrets and keys of the first version are read with what has come since', async context => {
  const folder = mkdtempSync(join(tmpdir(), 'runyard-upgrade-'))
  context.after(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'db')
  const engine = new SqliteEngine({ file, migrations: [initial] })
  for (const row of ROWS) engine.database.exec(row)
  engine.close()
  const store = await openSqliteStore({ file, host: 'inline' })
  context.after(() => store.close())
  const template = (await store.templates.find(DEFAULT_OWNER, 't1' as TemplateId))!
  assert.deepEqual(
    [template.registry, template.isPublic, template.category, template.startSsh, template.allowedCudaVersions],
    [null, false, 'NVIDIA', true, []],
  )
  const endpoint = (await store.endpoints.find('e1' as EndpointId))!
  assert.deepEqual([endpoint.modelReferences, endpoint.networkVolumeIds, endpoint.version], [[], ['gone'], 7])
  assert.equal(await store.endpoints.replace({ ...endpoint, name: 'new', version: 8 }, endpoint, 9), true)
  assert.deepEqual(
    (await store.releases.list(endpoint.id)).map(({ version, createdAtMs }) => [version, createdAtMs]),
    [
      [8, 9],
      [7, 5],
    ],
  )
  assert.deepEqual(
    (await store.keys.list('owner' as OwnerId)).map(({ kind, scope, hint, lastUsedAtMs }) => [
      kind,
      scope,
      hint,
      lastUsedAtMs,
    ]),
    [
      ['server', { type: 'all' }, '', null],
      ['user', { type: 'restricted', management: 'read', jobs: 'read' }, '', null],
      ['user', { type: 'restricted', management: 'none', jobs: { e1: 'write' } }, '', null],
    ],
  )
  assert.equal((await store.secrets.list(DEFAULT_OWNER)).length, 1)
})
