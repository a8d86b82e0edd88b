/** The management functions of the official Python client against a real server: its documents as they are. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { before, describe, test } from 'node:test'
import { patient } from '../../support/patience.ts'
import { temporaryFolder } from '../support/cleanup.ts'
import { ask, graphql, makeEndpoint, submit, whenStatus } from '../support/client.ts'
import { python, sdk2, sdk2Skip, skip } from '../support/python.ts'
import { fixture, root, type Server, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

/** The sentence for a key that may only read. */
const NO_RIGHT = 'this API key has no write right for management'
const folder = `${root}/examples/hello-node`
const image = `dir:${folder}`

/** Runs one part of the script and gives what it printed. */
// biome-ignore lint/suspicious/noExplicitAny: it is compared with what the test expects
function run(server: Server, program: string, words: readonly string[], key = server.apiKey): Promise<any> {
  const env = {
    PATH: process.env.PATH ?? '',
    HOME: temporaryFolder(),
    RUNPOD_ENDPOINT_BASE_URL: `${server.url}/v2`,
    RUNPOD_API_BASE_URL: server.url,
  }
  return new Promise((resolve, reject) => {
    const script = `${fixture('python-client')}/management.py`
    const child = execFile(program, [script, ...words], { env, timeout: patient(90_000) }, (error, stdout, stderr) => {
      if (error === null) resolve(JSON.parse(stdout))
      else reject(new Error(`the script failed: ${stderr}`))
    })
    child.stdin?.end(`${key}\n`)
  })
}

test("the management functions of RunPod's SDK 2.0 do the same over REST", { skip: sdk2Skip }, async () => {
  const server = await startServer()
  const client = (...words: string[]) => run(server, sdk2, words)
  const { first, second } = await client('templates', image)
  assert.deepEqual([first.name, first.image, first.disk, first.env], ['first', image, 7, { GREETING: 'hello' }])
  const { made, output, moved, after, listed } = await client('endpoints', first.id, second.id, 'QUEUE_DELAY')
  assert.deepEqual([output.message, after.message], ['Hello, Ada!', 'Hello, Grace!'])
  assert.deepEqual([moved.id, listed.length], [made.id, 1])
  const { count, one, none } = await client('catalogue')
  assert.deepEqual([count > 40, one.id, none.error], [true, 'NVIDIA GeForce RTX 4090', 'ValueError'])
  const key = 'ssh-ed25519 AAAAC3Nz me@home\nssh-rsa AAAAB3Nz'
  const account = await client('account', key)
  assert.deepEqual([account.before.pubKey, account.after.pubKey], ['', key])
  const { made: credential, updated, deleted, again } = await client('registries', image)
  assert.deepEqual([updated, deleted, again.error], [credential, true, 'QueryError'])
  const refused = await client('refused')
  for (const [call, text] of [
    ['template', /template nosuch not found/],
    ['pod', /tasks of apps \(@app.task\), and has no other pods/],
    ['stop', /tasks of apps \(@app.task\), and has no other pods/],
    ['resume', /tasks of apps \(@app.task\), and has no other pods/],
    ['terminate', /pod p not found/],
  ] as const) {
    assert.equal(refused[call].error, 'QueryError', call)
    assert.match(refused[call].text, text)
  }
  assert.deepEqual([refused.pods, refused.one], [[], null])
})

test('SDK 2.0 says why GraphQL refuses a change, and goes on while the server stops', { skip: sdk2Skip }, async () => {
  const server = await startServer()
  const client = (key: string) => run(server, sdk2, ['over_graphql'], key)
  const reader = { name: 'k', scope: { type: 'read-only' } }
  const { read, change } = await client((await ask(server, '/v2/account/keys', { body: reader })).json.key)
  assert.deepEqual([read.result.pubKey, change.error, change.text], ['', 'QueryError', NO_RIGHT])
  const limit = (objects: number | null) =>
    ask(server, '/v2/account/accounts/own', { method: 'PATCH', body: { limits: { objects } } })
  await limit(0)
  const full = (await client(server.apiKey)).change
  assert.equal(full.error, 'QueryError')
  assert.match(full.text, /the account's limit objects of 0 apps is reached/)
  await limit(null)

  const endpoint = await makeEndpoint(server, { folder, settings: { workersMax: 1 } })
  await whenStatus(server, endpoint, await submit(server, endpoint, { sleepMs: 600_000 }), ['IN_PROGRESS'])
  server.signal('SIGTERM')
  await until('it to be stopping', async () => (await ask(server, '/readyz')).status === 503)
  const stopping = await client(server.apiKey)
  assert.deepEqual([stopping.read.result.pubKey, stopping.change.result.name], ['', 'shop'])
  server.signal('SIGTERM')
  await server.ended
})

describe('the management functions of the official Python client', { skip }, () => {
  let server: Server

  before(async () => {
    server = await startServer()
  })

  const client = (...words: string[]) => run(server, python, words)

  test('make templates and an endpoint, run jobs on it, and link it to another template', async () => {
    const { first, second } = await client('templates', image)
    assert.deepEqual(first, {
      id: first.id,
      name: 'first',
      imageName: image,
      dockerArgs: '',
      containerDiskInGb: 7,
      volumeInGb: 0,
      volumeMountPath: '/data',
      ports: '8888/http,22/tcp',
      env: [{ key: 'GREETING', value: 'hello' }],
      isServerless: true,
    })
    const { made, output, moved, after, listed } = await client('endpoints', first.id, second.id)
    assert.deepEqual(made, {
      id: made.id,
      name: 'from python',
      templateId: first.id,
      gpuIds: 'AMPERE_16,ADA_24',
      networkVolumeId: null,
      locations: '',
      idleTimeout: 7,
      scalerType: 'REQUEST_COUNT',
      scalerValue: 2,
      workersMin: 0,
      workersMax: 1,
      allowedCudaVersions: '12.4,12.5',
      gpuCount: 2,
      flashBootType: 'FLASHBOOT',
    })
    assert.equal(output.message, 'Hello, Ada!')
    assert.deepEqual(moved, { id: made.id, templateId: second.id })
    assert.equal(after.message, 'Hello, Grace!')
    assert.equal(listed.length, 1)
    const { aiKey, createdAt, userId, ...rest } = listed[0]
    assert.match(aiKey, /^rpa_/)
    assert.equal(new Date(createdAt).toISOString(), createdAt)
    assert.equal(typeof userId, 'string')
    assert.deepEqual(rest, {
      id: made.id,
      name: 'from python',
      type: 'QB',
      templateId: second.id,
      gpuIds: 'AMPERE_16,ADA_24',
      gpuCount: 2,
      idleTimeout: 7,
      scalerType: 'REQUEST_COUNT',
      scalerValue: 2,
      workersMin: 0,
      workersMax: 1,
      locations: '',
      workersStandby: 0,
      version: 2,
      env: [],
      networkVolumeId: null,
      networkVolume: null,
    })
  })

  test('list GPU types and describe one', async () => {
    const { count, keys, one, none } = await client('catalogue')
    assert.ok(count > 40)
    assert.deepEqual(keys, ['displayName', 'id', 'memoryInGb'])
    assert.deepEqual([one.id, one.displayName, one.memoryInGb], ['NVIDIA GeForce RTX 4090', 'RTX 4090', 24])
    assert.deepEqual(one.lowestPrice, { minimumBidPrice: null, uninterruptablePrice: 0 })
    assert.equal(none.error, 'ValueError')
  })

  test('read and change the account', async () => {
    const key = 'ssh-ed25519 AAAAC3Nz me@home\nssh-rsa AAAAB3Nz'
    const { before: first, saved, after } = await client('account', key)
    assert.deepEqual(first, { id: first.id, pubKey: '', networkVolumes: [] })
    assert.deepEqual(saved, { id: first.id, pubKey: key })
    assert.deepEqual(after, { ...first, pubKey: key })
  })

  test('save, change and delete a credential for a registry', async () => {
    const { made, updated, deleted, again } = await client('registries', image)
    assert.equal(made.name, 'hub')
    assert.deepEqual([updated, deleted], [made, null])
    assert.deepEqual([again.error, /not found/.test(again.text)], ['QueryError', true])
    const { myself } = await graphql(server, '{ myself { podTemplates { name containerRegistryAuthId } } }')
    const wanted = { name: 'private', containerRegistryAuthId: null }
    assert.deepEqual(
      myself.podTemplates.filter(({ name }: { name: string }) => name === 'private'),
      [wanted],
    )
  })

  test('raise a message for people when they are refused', async () => {
    const seen = await client('refused')
    for (const [call, text] of [
      ['template', /template nosuch not found/],
      ['pools', /'NOPE' is not a GPU pool.*template nosuch not found/],
      ['quote', /Syntax Error/],
      ['pod', /tasks of apps \(@app.task\), and no other pods/],
      ['cpu', /tasks of apps \(@app.task\), and no other pods/],
      ['stop', /tasks of apps, not pods/],
      ['terminate', /pod p not found/],
    ] as const) {
      assert.equal(seen[call].error, 'QueryError', call)
      assert.match(seen[call].text, text)
    }
    assert.deepEqual(seen.pods, [])
  })
})
