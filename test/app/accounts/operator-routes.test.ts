/** Tests that only the keys in docs/security.md open what concerns the whole server or other accounts. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { type TestContext, test } from 'node:test'
import { OPS_ROUTES } from '../../../src/api/ops/route-access.ts'
import type { ApiParts } from '../../../src/api/parts.ts'
import { restRoutes } from '../../../src/api/rest/routes.ts'
import type { KeyScope } from '../../../src/core/accounts/permission.ts'
import type { OwnerId } from '../../../src/core/ids.ts'
import type { Backups } from '../../../src/ports/backups.ts'
import { MemoryModels } from '../../support/memory-models.ts'
import { openRig, type Rig, type RigOptions } from '../../support/rig.ts'

const DAY_MS = 24 * 60 * 60_000
const OTHER = 'other' as OwnerId

/** The kinds of keys, as the columns of the table name them. */
const KINDS: Readonly<
  Record<string, { readonly scope: KeyScope; readonly owner?: OwnerId; readonly ends?: true } | null>
> = {
  'no key': null,
  'another account, all rights': { scope: { type: 'all' }, owner: OTHER },
  '`jobs: write`': { scope: { type: 'restricted', management: 'none', jobs: 'write' } },
  '`management: write`': { scope: { type: 'restricted', management: 'write', jobs: 'none' } },
  '`read-only`': { scope: { type: 'read-only' } },
  '`metrics: read`': { scope: { type: 'restricted', management: 'none', jobs: 'none', metrics: 'read' } },
  'all rights, with an end': { scope: { type: 'all' }, ends: true },
  'all rights, without an end': { scope: { type: 'all' } },
}

/** Bodies of the requests, by row. @param soon a moment before a key ends */
const BODIES = (soon: string): Readonly<Record<string, object>> => ({
  'POST /ops/backup with keys': { passphrase: 'correct horse battery staple' },
  'POST /ops/backup without keys': { passphrase: null },
  'POST /v2/account/accounts': { name: 'another' },
  'PATCH /v2/account/accounts/{id} of another account': { deleteRunningEndpoints: true },
  'PATCH /v2/account/accounts/{id} name and limits of the own one': { name: 'own', limits: { workers: 5 } },
  'POST /v2/account/keys for another account': { name: 'k', account: 'third', expiresAt: soon },
  'POST /v2/account/keys without limits (`exempt`)': {
    name: 'k',
    exempt: true,
    expiresAt: soon,
    scope: { type: 'read-only' },
  },
  'PATCH /v2/account/keys/{id} of another account': { name: 'renamed' },
  'POST /v2/serverless with a folder of the machine': {
    name: 'folder',
    image: 'dir:/srv/worker',
    type: 'QUEUE',
    cpu: [{ id: 'cpu3g', vcpuCount: 2 }],
    scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
    workers: { min: 0, max: 1 },
  },
})

interface Row {
  /** The route and what is said behind it. */
  readonly name: string
  readonly route: string
  /** By kind of key. */
  readonly expected: Readonly<Record<string, string>>
}

function rowsOfTable(): Row[] {
  const page = readFileSync(new URL('../../../docs/security.md', import.meta.url), 'utf8')
  const lines = page.split('\n')
  const head = lines.findIndex(line => line.startsWith('| route | no key |'))
  const kinds = cellsOf(lines[head]!).slice(1)
  assert.deepEqual(kinds, Object.keys(KINDS))
  const end = lines.findIndex((line, at) => at > head && !line.startsWith('|'))
  return lines.slice(head + 2, end).map(line => {
    const [first, ...cells] = cellsOf(line)
    const [, route, more] = /^`([A-Z]+ [^`]+)`(.*)$/.exec(first!)!
    return {
      name: `${route}${more}`,
      route: route!,
      expected: Object.fromEntries(kinds.map((kind, at) => [kind, cells[at]!])),
    }
  })
}

function cellsOf(line: string): string[] {
  return line
    .split('|')
    .slice(1, -1)
    .map(cell => cell.trim())
}

const backups: Backups = {
  async make() {
    return {
      pieces: (async function* () {
        yield new Uint8Array([1])
      })(),
      drop: async () => {},
    }
  },
}

async function openServer(t: TestContext, options: RigOptions = {}) {
  const inspection = { processIsolation: 'none', engine: async () => null, diagnose: async () => [] }
  const rig = await openRig(t, {
    rateWindows: [],
    serverTime: true,
    models: new MemoryModels(),
    backups,
    inspection,
    ...options,
  })
  for (const id of [OTHER, 'third' as OwnerId]) {
    await rig.store.accounts.insert({ id, name: id, createdAtMs: 0, deleteRunningEndpoints: false, limits: {} })
  }
  const keys = new Map<string, string | null>()
  for (const [at, [name, kind]] of Object.entries(KINDS).entries()) {
    const { scope, owner, ends } = kind ?? {}
    if (scope === undefined) keys.set(name, null)
    else {
      const given = { scope, ...(owner && { owner }), ...(ends && { expiresAtMs: rig.clock.now() + DAY_MS }) }
      keys.set(name, await rig.addKey(`rpa_kind_${at}`, given))
    }
  }
  return { rig, keys }
}

async function ask(rig: Rig, { name, route }: Row, key: string | null): Promise<number> {
  const [method, path] = route.split(' ') as [string, string]
  const ofThird = name.includes('/keys/{id}')
  const third = { owner: 'third' as OwnerId, scope: { type: 'read-only' } } as const
  const id = ofThird ? await keyIdOf(rig, await rig.addKey(`rpa_third_${rig.ports.random.uuid()}`, third)) : 'third'
  const own = name.includes('own one') ? 'own' : id
  const filled = path.replace('{id}', own).replace('{owner}', 'org').replace('{name}', 'tiny')
  const body = BODIES(new Date(rig.clock.now() + DAY_MS / 2).toISOString())[name]
  const asked = rig.ask(method, filled, { key, ...(body && { body }) })
  await rig.clock.advance(route.startsWith('POST /ops/models') ? 5_000 : 0)
  const { status } = await asked
  return status
}

async function keyIdOf(rig: Rig, key: string): Promise<string> {
  return (await rig.store.keys.findByHash(rig.vault.hash(key)))!.id
}

test('each route of the table in docs/security.md is open for the kinds of keys that it names, and closed for all others', async t => {
  const { rig, keys } = await openServer(t)
  for (const row of rowsOfTable()) {
    for (const [kind, expected] of Object.entries(row.expected)) {
      const status = await ask(rig, row, keys.get(kind)!)
      const what = `${row.name}, ${kind}: ${status}`
      if (expected === 'yes') {
        const isRefused =
          status === 401 || status === 403 || (status === 404 && !row.name.includes('of the own account'))
        assert.ok(!isRefused || (row.route.startsWith('DELETE /ops/models') && status === 404), what)
        assert.ok(status < 500, what)
      } else assert.equal(String(status), expected, what)
    }
  }
})

test('the table has every route of the operator and everything below /ops, and nothing else can be added there', async () => {
  const routes = new Set(rowsOfTable().map(({ route }) => route))
  const ofRest = restRoutes({} as ApiParts)
    .map(({ contract }) => contract)
    .filter(({ level, body }) => level === 'operator' || body?.operatorMembers !== undefined)
    .map(({ method, path }) => `${method.toUpperCase()} ${path}`)
  const ofOps = Object.keys(OPS_ROUTES).map(route => route.replaceAll(/:(\w+)/g, '{$1}'))
  assert.ok(ofRest.length >= 8)
  for (const route of [...ofRest, ...ofOps]) assert.ok(routes.has(route), `${route} is not in the table`)
  const folder = new URL('../../../src/api/ops/', import.meta.url)
  const files = await readdir(folder)
  const added = files.flatMap(file => {
    const text = readFileSync(new URL(file, folder), 'utf8')
    return [...text.matchAll(/\bapp\.(?:get|post|put|patch|delete|all|on)\(('[^']*')?/g)].map(([, path]) => path)
  })
  assert.deepEqual(added.sort(), ["'/healthz'", "'/metrics'", "'/readyz'", undefined])
})

test('what is refused at these routes is in the audit log, by key and operation', async t => {
  const { rig, keys } = await openServer(t)
  const rows = rowsOfTable().filter(({ expected }) => expected['`management: write`'] === '403')
  for (const row of rows) await ask(rig, row, keys.get('`management: write`')!)
  const keyWithEnd = keys.get('all rights, with an end')!
  const backup = rows.find(({ name }) => name === 'POST /ops/backup with keys')!
  for (let at = 0; at < 3; at += 1) await ask(rig, backup, keyWithEnd)
  await rig.clock.advance(60_000)
  const { entries } = (await rig.ask('GET', '/v2/audit?limit=1000')).json
  const refused = entries.filter(
    ({ outcome, surface }: { outcome: string; surface: string }) => outcome === 'refused' && surface === 'server',
  )
  const keyId = await keyIdOf(rig, keys.get('`management: write`')!)
  const operations = (right: string, id: string) =>
    refused
      .filter(
        (entry: { keyId: string; problem: string }) => entry.keyId === id && entry.problem === `no right ${right}`,
      )
      .map(({ operation }: { operation: string }) => operation)
      .sort()
  assert.deepEqual(operations('metrics:read', keyId), ['readClock', 'readMetrics', 'readStatus'])
  assert.deepEqual(operations('operator', keyId), [
    ...['acceptClock', 'createAccount', 'createKey', 'getMachine', 'getMachineDiagnosis', 'listAccounts'],
    ...['listAuditEntries', 'listModels', 'makeBackup', 'pullModel', 'removeModel', 'updateAccount', 'verifyAuditLog'],
  ])
  assert.deepEqual(operations('operator:lasting', await keyIdOf(rig, keyWithEnd)), ['makeBackup'])
  const counted = refused.find(({ problem }: { problem: string }) => problem === 'no right operator:lasting')
  assert.equal(counted.detail.attempts, 3)
})

test('a flood of refusals neither fills the audit log nor pushes other entries out', async t => {
  const { rig } = await openServer(t, { audit: { maxEntries: 200 } })
  await rig.ask('POST', '/v2/account/accounts', { body: { name: 'remembered' } })
  const lesser = { scope: { type: 'read-only' } } as const
  const keys = await Promise.all(Array.from({ length: 20 }, (_, at) => rig.addKey(`rpa_flood_${at}`, lesser)))
  for (let round = 0; round < 3; round += 1) {
    for (const key of keys) {
      await rig.ask('GET', '/v2/machine', { key })
      await rig.ask('POST', '/v2/account/accounts', { key, body: { name: 'x' } })
      await rig.ask('POST', '/ops/backup', { key, body: { passphrase: null } })
    }
    await rig.clock.advance(60_000)
  }
  const { entries } = (await rig.ask('GET', '/v2/audit?limit=1000')).json
  const refused = entries.filter(({ outcome }: { outcome: string }) => outcome === 'refused')
  assert.ok(refused.length <= 40, `${refused.length} entries`)
  assert.ok(
    entries.some(
      ({ operation, outcome }: { operation: string; outcome: string }) =>
        operation === 'createAccount' && outcome === 'done',
    ),
  )
})
