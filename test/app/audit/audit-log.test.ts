/** Content of the audit log, its readers, and its effect on changes. */
import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { unsupportedMutations } from '../../../src/api/graphql/resolvers/unsupported.ts'
import { JOB_ROUTES } from '../../../src/api/jobs/routes.ts'
import { OPS_ROUTES } from '../../../src/api/ops/route-access.ts'
import { callerFromKey, FULL_SCOPE } from '../../../src/core/accounts/permission.ts'
import type { ShownEntry } from '../../../src/core/audit/entry.ts'
import { DEFAULT_OWNER } from '../../../src/core/ids.ts'
import type { BackupFolder } from '../../../src/ports/backups.ts'
import type { AuditStore } from '../../../src/ports/store/audit-store.ts'
import type { Store } from '../../../src/ports/store/store.ts'
import { AuditReader } from '../../../src/services/audit/audit-reader.ts'
import { makeKey } from '../../contract/store-world.ts'
import { portsWith } from '../../support/ports.ts'
import { CONSOLE, openRig, type Rig } from '../../support/rig.ts'

const PLANTED = 'planted-hunter2'
const GENESIS = '0'.repeat(64)

async function entriesOf(rig: Rig, query = ''): Promise<(ShownEntry & { hash: string })[]> {
  const { status, json, text } = await rig.ask('GET', `/v2/audit?limit=1000${query}`)
  assert.equal(status, 200, text)
  return json.entries
}

async function operationsOf(rig: Rig, query = ''): Promise<string[]> {
  return (await entriesOf(rig, query)).map(({ operation }) => operation)
}

async function exported(rig: Rig): Promise<{ entry: ShownEntry; hash: string }[]> {
  const { text, headers } = await rig.ask('GET', '/v2/audit?format=jsonl')
  assert.equal(headers.get('content-type'), 'application/x-ndjson')
  return text
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line))
}

test('a change is there with who made it, from where, what was different, and the id of the request', async t => {
  const rig = await openRig(t)
  const id = await rig.endpoint({ workersMax: 1 })
  const asking = { address: '203.0.113.7', headers: { 'x-request-id': 'ticket-7' } }
  const body = { workers: { min: 0, max: 3 } }
  assert.equal((await rig.ask('PATCH', `/v2/serverless/${id}`, { ...asking, body })).status, 200)
  const [entry] = await entriesOf(rig)
  const [key] = await rig.store.keys.list(DEFAULT_OWNER)
  const { sequence: _, at: _at, hash: _hash, begun, changes, ...rest } = entry!
  assert.deepEqual(rest, {
    account: DEFAULT_OWNER,
    keyId: key!.id,
    session: false,
    address: '203.0.113.7',
    surface: 'rest',
    operation: 'updateEndpoint',
    object: { kind: 'endpoint', id },
    detail: {},
    outcome: 'done',
    problem: null,
    requestId: 'ticket-7',
  })
  assert.deepEqual(
    changes.filter(({ field }) => field === 'workersMax'),
    [{ field: 'workersMax', from: 1, to: 3 }],
  )
  assert.equal(begun, entry!.sequence - 1)
})

test('an account that is named own is there by its id, with what was different', async t => {
  const rig = await openRig(t)
  const path = '/v2/account/accounts/own'
  assert.equal((await rig.ask('PATCH', path, { body: { limits: { gpus: 2 } } })).status, 200)
  const [entry] = await entriesOf(rig)
  assert.deepEqual(entry!.object, { kind: 'account', id: DEFAULT_OWNER })
  assert.deepEqual(
    entry!.changes.map(({ field }) => field),
    ['limits'],
  )
})

test('a refused change is there as refused, a dry run and a read are not there', async t => {
  const rig = await openRig(t)
  const id = await rig.endpoint()
  const before = (await entriesOf(rig)).length
  await rig.ask('PATCH', `/v2/serverless/${id}?dryRun=true`, { body: { workers: { min: 0, max: 2 } } })
  await rig.ask('GET', `/v2/serverless/${id}`)
  await rig.ask('GET', `/v2/${id}/health`)
  assert.equal((await rig.ask('DELETE', '/v2/templates/none')).status, 404)
  const entries = await entriesOf(rig)
  assert.equal(entries.length, before + 1)
  const { operation, outcome, problem, object } = entries[0]!
  assert.deepEqual([operation, outcome, problem, object?.id], ['deleteTemplate', 'refused', 'not_found', 'none'])
})

test('each mutation of GraphQL that changes something is there', async t => {
  const rig = await openRig(t)
  const { __schema } = await rig.graphql('{ __schema { mutationType { fields { name } } } }')
  const names: string[] = __schema.mutationType.fields.map(({ name }: { name: string }) => name)
  // A login that waits changes nothing: the key that a person gives it in the console has an entry.
  const isLogin = (name: string) => name === 'createFlashAuthRequest'
  const supported = names.filter(name => !Object.hasOwn(unsupportedMutations, name) && !isLogin(name))
  assert.ok(supported.length > 10)
  // Each is called without an argument that it needs, or with an id that does not exist: the refusal is an entry.
  const { __schema: schema } = await rig.graphql(
    '{ __schema { mutationType { fields { name args { name type { ...t ofType { ...t ofType { ...t } } } } } } types { name inputFields { name type { ...t ofType { ...t ofType { ...t } } } } } } } fragment t on __Type { kind name }',
  )
  type Type = { kind: string; name: string | null; ofType?: Type }
  const named = (type: Type): Type => (type.ofType == null ? type : named(type.ofType))
  const literalOf = (type: Type): string => {
    const { kind, name } = named(type)
    if (kind === 'INPUT_OBJECT') {
      const { inputFields } = schema.types.find((one: { name: string }) => one.name === name)
      const needed = inputFields.filter((field: { type: Type }) => field.type.kind === 'NON_NULL')
      return `{ ${needed.map((field: { name: string; type: Type }) => `${field.name}: ${literalOf(field.type)}`).join(', ')} }`
    }
    if (kind === 'ENUM') return 'SECURE'
    const plain = name === 'Int' || name === 'Float' ? '1' : name === 'Boolean' ? 'true' : '"none"'
    return type.kind === 'NON_NULL' && type.ofType?.kind === 'LIST' ? `[${plain}]` : plain
  }
  for (const name of supported) {
    const field = schema.mutationType.fields.find((one: { name: string }) => one.name === name)
    const args = field.args.map((arg: { name: string; type: Type }) => `${arg.name}: ${literalOf(arg.type)}`).join(', ')
    const asked = args === '' ? name : `${name}(${args})`
    let answer = await rig.ask('POST', '/graphql', { body: { query: `mutation { ${asked} }` } })
    if (/selection of subfields/.test(answer.text)) {
      answer = await rig.ask('POST', '/graphql', { body: { query: `mutation { ${asked} { __typename } }` } })
    }
    const found = await entriesOf(rig, `&operation=${name}`)
    assert.equal(found.length, 1, `${asked}: ${answer.text}`)
    assert.equal(found[0]!.surface, 'graphql')
  }
})

test('each job operation that changes something is there, under a name of its own', async t => {
  const changing = JOB_ROUTES.filter(({ changes, path }) => changes && path !== '/batch/:batch/requests')
  for (const { path, methods, audited } of changing) {
    const missing = methods.filter(method => method !== 'GET' && audited[method] === undefined)
    assert.deepEqual(missing, [], path)
  }
  const rig = await openRig(t)
  const id = await rig.endpoint({ workersMax: 0 })
  const job = await rig.submit(id)
  await rig.ask('GET', `/v2/${id}/status/${job}?ttl=60000`)
  await rig.ask('GET', `/v2/${id}/status/${job}`)
  await rig.ask('POST', `/v2/${id}/cancel/${job}`)
  await rig.ask('GET', `/v2/${id}/webhook-key`)
  const entries = (await entriesOf(rig, '&surface=jobs')).map(({ operation, object }) => [operation, object?.id])
  assert.deepEqual(entries, [
    ['getWebhookKey', id],
    ['cancelJob', job],
    ['setJobTtl', job],
  ])
})

test('no route of commands changes anything without an entry', () => {
  const folder = fileURLToPath(new URL('../../../src/api/ops', import.meta.url))
  const text = readdirSync(folder).map(name => readFileSync(join(folder, name), 'utf8'))
  const [, ...routes] = text.join('\n').split(/\baddRoute\(app, access, /)
  const changing = routes.filter(route => !route.startsWith("'GET "))
  assert.equal(changing.length, Object.keys(OPS_ROUTES).filter(route => !route.startsWith('GET ')).length)
  const silent = changing.filter(route => !route.includes('audited(')).map(route => route.split(',')[0])
  assert.deepEqual(silent, [])
})

test('what commands do, and who signs in and out, is there', async t => {
  const rig = await openRig(t)
  const id = await rig.endpoint()
  await rig.ask('POST', `/ops/restart/${id}`)
  await rig.ask('POST', '/ops/models/owner/name')
  await rig.ask('DELETE', '/ops/models/owner/name')
  const link = (await rig.ask('POST', '/console/link')).json.url.split('#link=')[1]
  const page = { 'x-runyard-console': '-', origin: CONSOLE, 'sec-fetch-site': 'same-origin' }
  const signedIn = await rig.ask('POST', '/console/session', {
    at: CONSOLE,
    key: null,
    headers: page,
    body: { link },
    address: '203.0.113.9',
  })
  assert.equal(signedIn.status, 200, signedIn.text)
  const cookie = signedIn.headers.get('set-cookie')!.split(';')[0]!
  const own = { ...page, 'x-runyard-console': signedIn.json.token, cookie }
  const asking = { at: CONSOLE, key: null, headers: own }
  assert.equal(
    (await rig.ask('POST', '/v2/account/secrets', { ...asking, body: { name: 'a', value: 'b' } })).status,
    201,
  )
  assert.equal((await rig.ask('DELETE', '/console/session', asking)).status, 204)
  const entries = await entriesOf(rig)
  const listed = entries.filter(({ surface }) => surface === 'console' || surface === 'ops' || surface === 'rest')
  assert.deepEqual(
    listed.map(({ operation, session, outcome }) => [operation, session, outcome]),
    [
      ['signOut', true, 'done'],
      ['createSecret', true, 'done'],
      ['signIn', false, 'done'],
      ['makeSignInLink', false, 'done'],
      ['removeModel', false, 'refused'],
      ['pullModel', false, 'refused'],
      ['restartEndpoint', false, 'done'],
    ],
  )
  assert.equal(entries.find(({ operation }) => operation === 'signIn')?.address, '203.0.113.9')
})

test('a backup that the server makes by itself is there', async t => {
  const backupFolder: BackupFolder = {
    path: '/backups',
    everyMs: 86_400_000,
    newest: async () => null,
    make: async () => ({ file: '/backups/one', atMs: 1, bytes: 7 }),
  }
  const rig = await openRig(t, { backupFolder })
  await rig.clock.advance(1_000)
  const [entry] = await entriesOf(rig, '&operation=makeBackup')
  assert.deepEqual(
    [entry?.surface, entry?.outcome, entry?.detail],
    ['server', 'done', { file: '/backups/one', bytes: 7 }],
  )
})

test('no value of a variable, a secret, a password, a command or a key is in any entry, and names of variables are', async t => {
  const rig = await openRig(t)
  await rig.ask('POST', '/v2/account/secrets', { body: { name: 'token', value: PLANTED, description: PLANTED } })
  const registry = await rig.ask('POST', '/v2/registries', { body: { name: 'r', username: 'u', password: PLANTED } })
  const id = await rig.endpoint({ name: 'one' })
  const env = { MODEL: PLANTED, URL: `https://me:${PLANTED}@example.com`, T: '{{ RUNPOD_SECRET_token }}' }
  assert.equal((await rig.ask('PATCH', `/v2/serverless/${id}`, { body: { env } })).status, 200)
  const template = { name: 't', image: 'i', serverless: true, env: { KEY: PLANTED } }
  const made = await rig.ask('POST', '/v2/templates', { body: template })
  assert.equal(made.status, 201, made.text)
  const input = { name: 'g', imageName: 'i', dockerArgs: `run --token ${PLANTED}`, containerDiskInGb: 5, volumeInGb: 0 }
  const save = 'mutation ($input: SaveTemplateInput) { saveTemplate(input: $input) { id } }'
  await rig.graphql(save, {
    input: { ...input, isServerless: true, readme: PLANTED, env: [{ key: 'A', value: PLANTED }] },
  })
  const key = await rig.ask('POST', '/v2/account/keys', { body: { name: 'k' } })
  const webhook = `https://example.com/hook?token=${PLANTED}`
  const body = { name: 'b', webhook, requests: [{ input: { PLANTED }, webhook }] }
  const batch = await rig.ask('POST', `/v2/${id}/batch`, { body })
  assert.equal(batch.status, 200, batch.text)
  await rig.ask('DELETE', `/v2/registries/${registry.json.id}`)
  const { text } = await rig.ask('GET', '/v2/audit?format=jsonl')
  assert.ok(!text.includes(PLANTED), text)
  assert.ok(!text.includes(key.json.key))
  assert.ok(text.includes('"added":["MODEL","URL","T"]'))
  assert.ok(text.includes('{"field":"password","changed":true}'))
  assert.ok(text.includes('{"field":"args","changed":true}'))
})

test('a worker that gets secrets is there before it starts, and does not start without its entry', async t => {
  const rig = await openRig(t)
  await rig.ask('POST', '/v2/account/secrets', { body: { name: 'token', value: PLANTED } })
  const template = await rig.template({ env: [{ key: 'T', value: '{{ RUNPOD_SECRET_token }}' }] })
  const id = await rig.endpoint({ templateId: template, workersMin: 0, workersMax: 1 })
  rig.failNext('audit.append', 'before')
  await rig.submit(id)
  await rig.clock.advance(100)
  assert.equal(rig.happened('worker.start_failed').length, 1)
  assert.deepEqual(await operationsOf(rig, '&operation=openSecrets'), [])
  await rig.clock.advance(60_000)
  const [entry] = await entriesOf(rig, '&operation=openSecrets')
  const [worker] = await rig.store.workers.alive()
  assert.deepEqual(entry?.object, { kind: 'worker', id: worker?.id })
  assert.deepEqual(entry?.detail, { endpoint: id, release: 1, secrets: ['token'], registry: null })
  assert.equal(entry?.account, DEFAULT_OWNER)
})

test('without the audit log nothing is changed, and the answer is 503 with the reason', async t => {
  const rig = await openRig(t)
  rig.failNext('audit.append', 'before')
  const { status, json, headers } = await rig.ask('POST', '/v2/account/secrets', { body: { name: 'a', value: 'b' } })
  assert.equal(status, 503)
  assert.match(
    json.detail,
    /the audit log cannot be written, .* \(audit\.append failed before it did anything, as planned\)/,
  )
  assert.ok(headers.has('retry-after'))
  assert.deepEqual((await rig.ask('GET', '/v2/account/secrets')).json.secrets, [])
  const id = await rig.endpoint({ workersMax: 0 })
  const job = await rig.submit(id)
  rig.failNext('audit.append', 'before')
  assert.equal((await rig.ask('POST', `/v2/${id}/cancel/${job}`)).status, 503)
  assert.equal((await rig.status(id, job)).json.status, 'IN_QUEUE')
  rig.failNext('audit.append', 'before')
  assert.equal((await rig.ask('POST', `/v2/${id}/run`, { body: { input: {} } })).status, 200, 'jobs need no log')
})

test('a change that the store made and did not acknowledge is there as failed: it may have been made', async t => {
  const rig = await openRig(t)
  rig.failNext('secrets.insert', 'after')
  await rig.ask('POST', '/v2/account/secrets', { body: { name: 'a', value: 'b' } })
  const failed = (await entriesOf(rig, '&operation=createSecret'))[0]!
  assert.deepEqual([failed.outcome, failed.problem], ['failed', 'unavailable'])
  const begun = failed.begun!
  const all = await exported(rig)
  assert.equal(all.find(({ entry }) => entry.sequence === begun)?.entry.outcome, 'begun')
})

test('what began on a server that was killed ends as unknown when the next one starts', async t => {
  const rig = await openRig(t)
  const { entry } = (await exported(rig)).at(-1)!
  const { at: _, sequence: _number, ...rest } = entry
  const fields = { ...rest, atMs: rig.clock.now(), operation: 'createSecret', outcome: 'begun', begun: null } as const
  const [sequence] = await rig.store.audit.append([fields])
  assert.deepEqual(await entriesOf(rig, '&operation=createSecret'), [])
  await rig.crash()
  await rig.start()
  const [found] = await entriesOf(rig, '&operation=createSecret')
  assert.deepEqual([found?.outcome, found?.begun], ['unknown', sequence])
  await rig.crash()
  await rig.start()
  assert.equal((await entriesOf(rig, '&operation=createSecret')).length, 1)
})

test('nothing is changed before the first entry is on stable storage, and nothing is answered before the second one is', async t => {
  const rig = await openRig(t)
  const { append } = rig.store.audit
  const gates: (() => void)[] = []
  rig.store.audit.append = async entries => {
    await new Promise<void>(resolve => gates.push(resolve))
    return append(entries)
  }
  let answered = false
  const asked = rig.ask('POST', '/v2/account/secrets', { body: { name: 'a', value: 'b' } })
  asked.then(() => {
    answered = true
  })
  await rig.clock.settle()
  assert.deepEqual([gates.length, await rig.store.secrets.findByName(DEFAULT_OWNER, 'a')], [1, null])
  gates[0]!()
  await rig.clock.settle()
  assert.notEqual(await rig.store.secrets.findByName(DEFAULT_OWNER, 'a'), null)
  assert.deepEqual([gates.length, answered], [2, false])
  gates[1]!()
  assert.equal((await asked).status, 201)
  rig.store.audit.append = append
})

test('an end that the store did not take is written later, and the change was answered 503', async t => {
  const rig = await openRig(t)
  const { append } = rig.store.audit
  let calls = 0
  // The first call says that it began, the second how it ended.
  rig.store.audit.append = async entries => {
    calls += 1
    if (calls === 2) throw new Error('the disk is full')
    return append(entries)
  }
  const { status } = await rig.ask('POST', '/v2/account/secrets', { body: { name: 'a', value: 'b' } })
  assert.equal(status, 503)
  assert.deepEqual(await operationsOf(rig, '&operation=createSecret'), [])
  await rig.clock.advance(30_000)
  const [entry] = await entriesOf(rig, '&operation=createSecret')
  assert.equal(entry?.outcome, 'done')
})

test('another account reads nothing of it, and neither does a key for jobs', async t => {
  const rig = await openRig(t)
  const { id } = (await rig.ask('POST', '/v2/account/accounts', { body: { name: 'other' } })).json
  assert.ok(id)
  await rig.addKey('rpa_stranger', { owner: id })
  await rig.addKey('rpa_jobs', { scope: { type: 'restricted', management: 'none', jobs: 'write' } as never })
  for (const key of ['rpa_stranger', 'rpa_jobs']) {
    for (const path of ['/v2/audit', '/v2/audit?format=jsonl', '/v2/audit/verification']) {
      const { status, text } = await rig.ask('GET', path, { key })
      assert.equal(status, 403, text)
      assert.ok(!text.includes('createAccount'))
    }
  }
  await rig.clock.advance(20_000)
  const refused = (await entriesOf(rig)).filter(({ outcome }) => outcome === 'refused')
  const listed = refused.map(({ operation, problem, detail }) => [operation, problem, detail.attempts])
  assert.deepEqual(listed.toReversed(), [
    ['listAuditEntries', 'no right operator', 2],
    ['verifyAuditLog', 'no right operator', 1],
    ['listAuditEntries', 'no right operator', 2],
    ['verifyAuditLog', 'no right operator', 1],
  ])
})

test('keys that fail are counted together, and strangers cannot fill the log', async t => {
  const rig = await openRig(t)
  for (let at = 0; at < 300; at += 1) {
    await rig.ask('GET', '/v2/serverless', { key: 'rpa_wrong', address: `203.0.113.${at % 250}`, headers: {} })
  }
  await rig.clock.advance(10 * 60_000)
  const found = await entriesOf(rig, '&operation=useKey')
  assert.ok(found.length >= 20 && found.length <= 45, String(found.length))
  assert.ok(found.every(({ outcome, keyId }) => outcome === 'refused' && keyId === null))
})

test('an export has everything, and its hashes can be checked with nothing but SHA-256', async t => {
  const rig = await openRig(t)
  for (let at = 0; at < 5; at += 1) {
    await rig.ask('POST', '/v2/account/secrets', { body: { name: `s${at}`, value: 'b' } })
  }
  const { text } = await rig.ask('GET', '/v2/audit', { headers: { accept: 'application/x-ndjson' } })
  let previous = GENESIS
  const lines = text.trimEnd().split('\n')
  for (const line of lines) {
    const [, content, own] = /^\{"entry":(\{.*\}),"hash":"([\da-f]{64})"\}$/.exec(line)!
    assert.equal(hash('sha256', `${previous}\n${content}`, 'hex'), own)
    previous = own!
  }
  const { json } = await rig.ask('GET', '/v2/audit/verification')
  assert.deepEqual([json.intact, json.head.hash, json.broken], [true, previous, null])
  assert.equal((await rig.ask('GET', '/v2/audit?format=jsonl&account=owner')).status, 400)
})

test('pages follow each other without a gap, also while entries are added', async t => {
  const rig = await openRig(t)
  for (let at = 0; at < 7; at += 1) {
    await rig.ask('POST', '/v2/account/secrets', { body: { name: `s${at}`, value: 'b' } })
  }
  const found: number[] = []
  let cursor = ''
  do {
    const { json } = await rig.ask('GET', `/v2/audit?operation=createSecret&limit=3${cursor}`)
    found.push(...json.entries.map(({ sequence }: { sequence: number }) => sequence))
    await rig.ask('DELETE', '/v2/account/secrets/none')
    cursor = json.pagination.nextCursor === null ? '' : `&cursor=${json.pagination.nextCursor}`
  } while (cursor !== '')
  assert.equal(found.length, 7)
  assert.deepEqual(
    found,
    found.toSorted((a, b) => b - a),
  )
})

test('a page is the same in however many parts its entries are looked at', async t => {
  const rig = await openRig(t)
  for (let n = 0; n < 5; n += 1) await rig.endpoint()
  const caller = callerFromKey(makeKey('1', { owner: DEFAULT_OWNER, scope: FULL_SCOPE }))
  const all = { account: null, key: null, operation: null, object: null, surface: null, sinceMs: null, untilMs: null }
  const count = (await rig.store.audit.ends()).head.sequence
  let reads = 0
  const readerOf = (most: number) => {
    const list: AuditStore['list'] = (filter, before, limit) => {
      reads += 1
      return rig.store.audit.list(filter, before, limit, most)
    }
    return new AuditReader(portsWith({ store: { audit: { list } } as unknown as Store }))
  }
  for (const filter of [all, { ...all, surface: 'server' as const }, { ...all, object: 'none' }]) {
    for (const limit of [2, 1_000]) {
      const page = await readerOf(100_000).page(caller, filter, { limit })
      for (const most of [1, 2, 7]) {
        reads = 0
        assert.deepEqual(await readerOf(most).page(caller, filter, { limit }), page)
        if (limit === 1_000) assert.equal(reads, Math.ceil(count / most))
      }
    }
  }
})
