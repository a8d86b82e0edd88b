/**
 * Every route of every surface, while the database is away and while its disk is full: each response has
 * the time after which the call may be repeated.
 */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { JOB_ROUTES } from '../../../src/api/jobs/routes.ts'
import { OPS_ROUTES } from '../../../src/api/ops/route-access.ts'
import { openSqliteStore } from '../../../src/store/engines/sqlite.ts'
import { faultyStore } from '../../support/faulty-store.ts'
import { openRig, type Rig } from '../../support/rig.ts'

/** Calls of the store that read, by the beginnings of their names. */
const READS =
  /\.(?:find|list|get|read|count|snapshot|page|ends|load|of|has|is|all|by|sum|due|open|newest|oldest|held|alive|known|ended|images)/

/** A route as it is called. */
interface Called {
  readonly method: string
  readonly path: string
  readonly body?: object
}

async function opened(t: TestContext): Promise<{ rig: Rig; fails: (which: 'nothing' | 'all' | 'changes') => void }> {
  let fails = (_name: string) => false
  const plain = await openSqliteStore({ file: ':memory:', host: 'inline' })
  const openStore = async () => faultyStore(plain, name => (fails(name) ? 'before' : null))
  const rig = await openRig(t, { openStore, backups: { make: () => Promise.reject(fullDisk()) } })
  return {
    rig,
    fails(which) {
      fails = name => which === 'all' || (which === 'changes' && !READS.test(name))
    },
  }
}

function fullDisk(): Error {
  return Object.assign(new Error('write'), { code: 'ENOSPC' })
}

/** A body of these schemas that is wrong in nothing that does not need the store. */
const BODIES: Readonly<Record<string, object>> = {
  '/v2/serverless': { name: 'other', type: 'QUEUE', templateId: '{templateId}' },
  '/v2/templates': { name: 'other', image: 'a/b', disk: 5 },
  '/v2/keys': { name: 'other' },
  '/v2/secrets': { name: 'other', value: 'x' },
  '/v2/accounts': { name: 'other' },
}

/** All operations of the document, of the jobs, of the operator and of the other surfaces, with ids that exist. */
async function allRoutes(rig: Rig, ids: Readonly<Record<string, string>>): Promise<Called[]> {
  const named = (path: string) => path.replace(/\{(\w+)\}|:(\w+)/g, (_, one, other) => ids[one ?? other] ?? ids.id!)
  const { paths } = (await rig.ask('GET', '/v2/openapi.json')).json as { paths: Record<string, object> }
  const methods = ['get', 'post', 'put', 'patch', 'delete']
  const ofDocument = Object.entries(paths).flatMap(([path, operations]) =>
    Object.keys(operations)
      .filter(method => methods.includes(method))
      .map(method => ({ method: method.toUpperCase(), path: named(path), body: BODIES[path] ?? { name: 'changed' } })),
  )
  const ofJobs = JOB_ROUTES.flatMap(({ path, methods: all }) =>
    all.map(method => ({ method, path: named(`/v2/{endpointId}${path}`), body: { input: {} } })),
  )
  const ofOps = Object.keys(OPS_ROUTES).map(route => {
    const [method, path] = route.split(' ') as [string, string]
    return { method, path: named(path), body: {} }
  })
  const ofV1 = ['endpoints', 'templates', 'networkvolumes', 'containerregistryauth', 'billing/endpoints'].flatMap(
    path => [
      { method: 'GET', path: `/v1/${path}` },
      { method: 'POST', path: `/v1/${path}`, body: { name: 'other', imageName: 'a/b', templateId: ids.templateId } },
    ],
  )
  const ofGraphql = [
    '{ myself { endpoints { id } } }',
    '{ myself { podTemplates { id } } }',
    'mutation { saveTemplate(input: { name: "other", imageName: "a/b", containerDiskInGb: 5, volumeInGb: 0 }) { id } }',
    `mutation { deleteEndpoint(id: "${ids.endpointId}") }`,
  ].map(query => ({ method: 'POST', path: '/graphql', body: { query } }))
  const chat = { model: 'm', messages: [{ role: 'user', content: 'x' }] }
  const ofOpenai = [
    { method: 'GET', path: named('/v2/{endpointId}/openai/v1/models') },
    { method: 'POST', path: named('/v2/{endpointId}/openai/v1/chat/completions'), body: chat },
    { method: 'POST', path: named('/v2/{endpointId}/openai/v1/responses'), body: { model: 'm', input: 'x' } },
  ]
  const first = { method: 'GET', path: '/readyz' }
  return [first, ...ofDocument, ...ofJobs, ...ofOps, ...ofV1, ...ofGraphql, ...ofOpenai].map(route =>
    route.method === 'GET' || route.method === 'DELETE' ? { method: route.method, path: route.path } : route,
  )
}

for (const [fault, least] of [
  ['all', 120],
  ['changes', 55],
] as const) {
  const what = fault === 'all' ? 'the database is away' : 'its disk is full'
  test(`while ${what}, each route responds with 503 and a Retry-After in seconds, and never with 500`, async t => {
    const { rig, fails } = await opened(t)
    const { endpoint, worker } = await rig.endpointWithWorker()
    const id = await rig.submit(endpoint)
    const template = (await rig.ask('GET', `/v2/serverless/${endpoint}`)).json.templateId
    const ids = { id: endpoint, endpointId: endpoint, serverlessId: endpoint, templateId: template, job: id, jobId: id }
    const routes = await allRoutes(rig, ids)
    fails(fault)
    const wrong: string[] = []
    let refused = 0
    const look = (name: string, { status, headers, text }: { status: number; headers: Headers; text: string }) => {
      const isSaid = /^[1-9]\d*$/.test(headers.get('retry-after') ?? '')
      if (status === 503 || status === 429) refused += 1
      if (status === 500 || (status === 503 && !isSaid)) wrong.push(`${name}: ${status} ${text.slice(0, 100)}`)
    }
    for (const { method, path, body } of routes) {
      // Streams and long polls that need nothing of the store have no end of their own.
      const ended = new AbortController()
      const asked = rig.ask(method, path, { signal: ended.signal, ...(body !== undefined && { body }) })
      const answered = asked.then(
        answer => look(`${method} ${path}`, answer),
        () => {},
      )
      await rig.clock.settle()
      ended.abort()
      await rig.clock.settle()
      await answered
    }
    look('take', await worker.take())
    look('done', await worker.done(id, { output: 'x' }))
    assert.deepEqual(wrong, [])
    assert.ok(refused >= least, `${refused} of ${routes.length} routes need the store`)
    fails('nothing')
  })
}

test('while its disk is full, what makes room on it goes on: outputs are cut, and images that nobody needs go', async t => {
  const { rig, fails } = await opened(t)
  await rig.endpointWithWorker()
  const done: string[] = []
  const { driver } = rig.ports
  driver.tidy = async () => void done.push('tidy')
  const measure = rig.logs.measure.bind(rig.logs)
  rig.logs.measure = growing => {
    done.push('measure')
    return measure(growing)
  }
  fails('changes')
  await rig.clock.advance(11 * 60_000)
  assert.ok(done.includes('tidy'), 'images')
  assert.ok(done.filter(what => what === 'measure').length > 100, 'outputs')
  fails('nothing')
})
