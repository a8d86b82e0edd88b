/** Secrets are planted everywhere that takes one, and looked for everywhere that shows or keeps something. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { type Dirent, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { buildASTSchema, type GraphQLObjectType, getNamedType, isLeafType, isObjectType, parse } from 'graphql'
import { typeDefs } from '../../../src/api/graphql/sdl/schema.ts'
import type { ApiParts } from '../../../src/api/parts.ts'
import { restRoutes } from '../../../src/api/rest/routes.ts'
import { v1Routes } from '../../../src/api/rest-v1/routes.ts'
import { noPostgres, testSchema } from '../../support/postgres-database.ts'
import { temporaryFolder } from '../support/cleanup.ts'
import { ask, graphql, makeEndpoint, runJob, whenFinal } from '../support/client.ts'
import { allProcesses, relayPid, workerProcesses } from '../support/processes.ts'
import { fixture, type Server, startServer } from '../support/server.ts'

/** Planted secrets, by their names. */
type Planted = ReadonlyMap<string, Buffer>

const random = () => `planted-${randomBytes(12).toString('hex')}`

/** A value that is not a secret; the same search has to find it. */
const SHOWN = 'shown in answers and kept in files'

/** The files of the two keys, which have to be kept somewhere. */
const KEY_FILES = ['api-key', 'encryption-key']

/** Planted values in a text, also written in base64 or in hexadecimal. */
function findings(planted: Planted, where: string, text: string): string[] {
  return [...planted].flatMap(([what, bytes]) => {
    const forms = [bytes.toString('latin1'), bytes.toString('base64').replace(/=+$/, ''), bytes.toString('hex')]
    return forms.some(form => text.includes(form)) ? [`${what} in ${where}`] : []
  })
}

function filesBelow(folder: string): string[] {
  return entriesOf(folder).flatMap(entry => {
    const path = join(folder, entry.name)
    return entry.isDirectory() ? filesBelow(path) : entry.isFile() ? [path] : []
  })
}

/** Entries of a folder; empty if it was removed, as the folder of a worker that ends is. */
function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

function contents(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}

/** A server with planted secrets, and the ids in its paths. */
interface World {
  readonly server: Server
  readonly planted: Planted
  /** Ids by the beginning of the path that they go into. */
  readonly ids: Readonly<Record<string, string>>
  readonly endpoint: string
  readonly job: string
  readonly worker: string
}

async function plant(server: Server): Promise<World> {
  const rest = async (path: string, body: object, status = 201) => {
    const answer = await ask(server, path, { body })
    assert.equal(answer.status, status, answer.text)
    return answer.json
  }
  const [value, second, password, s3] = [random(), random(), random(), random()]
  const secret = await rest('/v2/account/secrets', { name: 'token', value, description: SHOWN })
  const registry = await rest('/v2/registries', { name: 'r', username: 'me', password })
  const volume = await rest('/v2/network-volumes', { name: 'v', size: 10, dataCenter: 'EU-RO-1' })
  const everywhere = await rest('/v2/global-volumes', { name: 'v' })
  const key = await rest('/v2/account/keys', { name: 'another' })
  assert.equal((await ask(server, '/v2/templates', { headers: { authorization: `Bearer ${key.key}` } })).status, 200)
  const env = { TOKEN: 'a {{ RUNPOD_SECRET_token }} b', OTHER: '{{RUNPOD_SECRET_token}}' }
  const folder = fixture('node-everyday')
  const endpoint = await makeEndpoint(server, { folder, env, settings: { workersMin: 1, workersMax: 2 } })
  // The SDK of apps puts the key of the person who deploys into the variables of workers.
  const ofDeployer = { FLASH_RESOURCE_NAME: 'add', RUNPOD_API_KEY: server.apiKey }
  const variables = Object.entries(ofDeployer).map(([key, value]) => ({ key, value }))
  const inline = { name: 'add', imageName: `dir:${folder}`, containerDiskInGb: 1, dockerArgs: '', env: variables }
  const deployed = { name: 'add', instanceIds: ['cpu3g-2-8'], workersMax: 0, template: inline }
  const save = 'mutation ($input: EndpointInput!) { saveEndpoint(input: $input) { id } }'
  await graphql(server, save, { input: deployed })
  const job = await runJob(server, endpoint, { name: 'Ada' })
  await rest(`/v2/${endpoint}/run`, { input: {}, s3Config: { accessId: 'id', accessSecret: s3 } }, 200)
  const failed = await rest(`/v2/${endpoint}/run`, { input: { fail: 'boom' } }, 200)
  await whenFinal(server, endpoint, failed.id)
  await ask(server, `/v2/account/secrets/${secret.id}`, { method: 'PATCH', body: { value: second } })
  // A release with a change of a variable that refers to it, and a worker that has the new value.
  const change = { env: { ...env, TOKEN: '{{ RUNPOD_SECRET_token }}' } }
  assert.equal((await ask(server, `/v2/serverless/${endpoint}`, { method: 'PATCH', body: change })).status, 200)
  const { workerId = '' } = await runJob(server, endpoint, { name: 'Ada' })
  await refusals(server, endpoint, [value, second, password])
  await throughGateway(server, [server.apiKey, key.key])
  const alertPath = random()
  const address = `http://127.0.0.1:1/${alertPath}`
  const receiver = await rest('/v2/account/alert-receivers', { name: 'ops', kind: 'webhook', address })
  const create = 'mutation { createFlashApp(input: { name: "one" }) { id } }'
  const app = (await ask(server, '/graphql', { body: { query: create } })).json.data.createFlashApp.id
  const { template } = (
    await ask(server, '/graphql', { body: { query: '{ myself { endpoints { template { id } } } }' } })
  ).json.data.myself.endpoints[0]
  const tokens = workerTokens(server)
  assert.ok(tokens.length > 0)
  const texts: (readonly [string, string])[] = [
    ...([
      ['the first value', value],
      ['the second value', second],
      ['the password', password],
      ['the address of a receiver of alerts', alertPath],
    ] as const),
    ...([
      ['the key', key.key],
      ['the S3 secret', s3],
      ['the key of the server', server.apiKey],
    ] as const),
    ...tokens.map((text, n) => [`the token of worker ${n}`, text] as const),
  ]
  return {
    server,
    planted: new Map([
      ...texts.map(([what, text]) => [what, Buffer.from(text)] as const),
      ['the master key', readFileSync(join(server.dataDir, 'encryption-key'))],
    ]),
    ids: {
      '/v2/serverless': endpoint,
      '/v1/endpoints': endpoint,
      '/v2/templates': template.id,
      '/v1/templates': template.id,
      '/v2/account/secrets': secret.id,
      '/v2/registries': registry.id,
      '/v1/containerregistryauth': registry.id,
      '/v2/network-volumes': volume.id,
      '/v1/networkvolumes': volume.id,
      '/v2/global-volumes': everywhere.id,
      '/v2/account/keys': key.id,
      '/v2/account/accounts': 'own',
      '/v2/account/apps': app,
      '/v2/account/alert-receivers': receiver.id,
      '/v2/catalog/gpus': 'NVIDIA L4',
      '/v2/catalog/cpus': 'cpu3g',
      '/v2/catalog/datacenters': 'EU-RO-1',
    },
    endpoint,
    job: job.id,
    worker: workerId,
  }
}

/** Requests to a worker that returns all that it received: it must not receive a key. */
async function throughGateway(server: Server, keys: readonly string[]): Promise<void> {
  const settings = { type: 'LB', scalerType: 'REQUEST_COUNT', scalerValue: 4 }
  const balanced = await makeEndpoint(server, { folder: fixture('server-node'), settings })
  for (const [at, key] of keys.entries()) {
    const other = keys.at(at - 1)!
    const forms: readonly [query: string, headers: Record<string, string | null>][] = [
      ['', { authorization: key }],
      [`?api_key=${key}`, { authorization: null }],
      [`?api_key=${key}&api_key=${other}`, { authorization: `Bearer ${other}` }],
      ['', { authorization: null, 'sec-websocket-protocol': `runyard.key.${key}` }],
      ['', { authorization: `Bearer ${key}`, referer: `${server.url}/lb/${balanced}/?api_key=${other}` }],
    ]
    for (const [query, headers] of forms) {
      const { status, text, json } = await ask(server, `/lb/${balanced}/a${query}`, { headers })
      assert.deepEqual([status, json.url], [200, '/a'], text)
      for (const secret of keys) assert.equal(text.includes(secret), false, text)
      const refused = await ask(server, `/lb/nobody/a${query}`, { headers })
      assert.equal(refused.status, 404)
      for (const secret of keys) assert.equal(refused.text.includes(secret), false, refused.text)
    }
  }
}

/** Requests that are refused with a planted text in them; what they are answered is held against all of these. */
async function refusals(server: Server, endpoint: string, texts: readonly string[]): Promise<void> {
  for (const text of texts) {
    const create = 'mutation ($input: SecretCreateInput!) { secretCreate(input: $input) { id } }'
    const answers = await Promise.all([
      ask(server, '/v2/account/secrets', { body: { name: 'token', value: text } }),
      ask(server, '/v2/account/secrets', { body: `{"name":"x","value":${text}}` }),
      ask(server, '/v2/registries', { body: { name: 'r', password: text, more: 1 } }),
      ask(server, '/graphql', { body: { query: create, variables: { input: { value: text } } } }),
      ask(server, `/v2/${endpoint}/run`, { body: `{"input":{},"s3Config":${text}}` }),
    ])
    for (const answer of answers) assert.equal(answer.text.includes(text), false, answer.text)
  }
}

function environmentOf(pid: number): Map<string, string> {
  const lines = contents(`/proc/${pid}/environ`).split('\0')
  return new Map(lines.map(line => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]))
}

function workerTokens(server: Server): string[] {
  const tokens = workerProcesses(server.dataDir).map(({ pid }) => environmentOf(pid).get('RUNPOD_AI_API_KEY') ?? '')
  return [...new Set(tokens.filter(token => token !== ''))]
}

/** Paths of operations whose response goes on: logs, which other reads here show, and events. */
const ENDLESS = /\/logs$|^\/v2\/events$/

/** Paths of all GET operations that end, each with an id that exists. */
function restPaths({ ids, worker }: World): string[] {
  const routes = [...restRoutes({} as ApiParts), ...v1Routes({} as ApiParts)]
  return (
    routes
      // A login is in memory and ends with the server. Tasks need HTTPS; their own tests look for their secrets.
      .filter(({ contract: { method, path } }) => method === 'get' && !/\/(?:logins|pods)\//.test(path))
      .filter(({ contract: { path } }) => !ENDLESS.test(path))
      .map(({ contract: { path } }) => {
        const id = Object.entries(ids).find(([start]) => path.startsWith(`${start}/`))?.[1] ?? ''
        const url = path.replace('{id}', encodeURIComponent(id)).replace('{workerId}', worker).replace('{version}', '1')
        return /^\/v1\/endpoints/.test(path) ? `${url}?includeTemplate=true&includeWorkers=true` : url
      })
  )
}

const JOB_PATHS = [
  'health',
  'metrics',
  'explain',
  'batch',
  'status/JOB',
  'stream/JOB?wait=0',
  'explain/JOB',
  'webhooks/JOB',
]

/**
 * Queries that ask for every field that needs no argument, one for each field of the account and of the query itself.
 */
function graphqlQueries(endpoint: string): string[] {
  const schema = buildASTSchema(parse(typeDefs.join('\n')))
  const fieldsOf = (type: GraphQLObjectType, depth: number): string =>
    Object.values(type.getFields())
      .filter(({ args }) => args.length === 0)
      .flatMap(({ name, type: of }) => {
        const named = getNamedType(of)
        if (isLeafType(named)) return [name]
        return depth > 0 && isObjectType(named) ? [`${name} { ${fieldsOf(named, depth - 1)} }`] : []
      })
      .join(' ') || '__typename'
  const user = schema.getType('User') as GraphQLObjectType
  const one = Object.values(user.getFields()).map(({ name, args, type }) => {
    const named = getNamedType(type)
    const what = args.length > 0 ? `${name}(id: "${endpoint}")` : name
    return `{ myself { ${what} ${isObjectType(named) ? `{ ${fieldsOf(named, 1)} }` : ''} } }`
  })
  const catalogue = ['gpuTypes', 'cpuFlavors', 'dataCenters', 'serverlessGpuPools', 'podTemplates']
  return [
    ...one,
    ...catalogue.map(name => {
      const field = schema.getQueryType()!.getFields()[name]!
      return `{ ${name} { ${fieldsOf(getNamedType(field.type) as GraphQLObjectType, 1)} } }`
    }),
  ]
}

async function inAnswers(world: World): Promise<string[]> {
  const { server, planted, endpoint, job, worker } = world
  const operations = ['/metrics', '/healthz', '/readyz', '/ops/why', `/ops/why/${job}`, `/ops/logs/${worker}?tail=1000`]
  const jobs = JOB_PATHS.map(path => `/v2/${endpoint}/${path.replace('JOB', job)}`)
  const found: string[] = []
  for (const path of [...restPaths(world), ...jobs, ...operations]) {
    const answer = await ask(server, path)
    assert.equal(answer.status, 200, `${path}: ${answer.text}`)
    found.push(...findings(planted, path, answer.text + JSON.stringify([...answer.headers])))
  }
  for (const query of graphqlQueries(endpoint)) {
    const { text, json } = await ask(server, '/graphql', { body: { query } })
    assert.equal(json.errors, undefined, `${query}: ${text}`)
    found.push(...findings(planted, query, text))
  }
  return found
}

/** Secrets in the processes that the operating system shows. Only a worker's environment may have its own secrets. */
function inProcesses({ server, planted }: World): string[] {
  const workers = new Set(allProcesses(server.dataDir).map(({ pid }) => pid))
  const all = readdirSync('/proc').filter(name => /^\d+$/.test(name))
  return all.flatMap(pid => [
    ...findings(planted, `the command line of ${pid}`, contents(`/proc/${pid}/cmdline`)),
    ...(workers.has(Number(pid))
      ? []
      : findings(planted, `the environment of ${pid}`, contents(`/proc/${pid}/environ`))),
  ])
}

async function everywhere(world: World): Promise<void> {
  const { server, planted } = world
  const values = workerProcesses(server.dataDir).map(({ pid }) => environmentOf(pid).get('TOKEN'))
  assert.ok(values.includes(String(planted.get('the second value'))), 'the worker has what it needs')
  assert.deepEqual(await inAnswers(world), [])
  assert.deepEqual(inProcesses(world), [])
  assert.notEqual(relayPid(server.dataDir), null)
  assert.deepEqual(findings(planted, 'the log', server.lines.join('\n')), [])
  assert.ok(server.lines.length > 20)
  assert.deepEqual(inFiles(server, planted), [])
}

function inFiles({ dataDir }: Server, planted: Planted): string[] {
  const files = filesBelow(dataDir).filter(path => !KEY_FILES.includes(path.slice(dataDir.length + 1)))
  return files.flatMap(path => findings(planted, path, contents(path)))
}

describe('a planted secret is in the environment of its worker and nowhere else', () => {
  test('on SQLite, while the server runs and after its end', async () => {
    const world = await plant(await startServer())
    await everywhere(world)
    const { server, planted } = world
    assert.ok(filesBelow(server.dataDir).some(path => path.endsWith('.sqlite-wal')))
    await server.stop()
    assert.deepEqual(inFiles(server, planted), [])
    const control = new Map([['the description', Buffer.from(SHOWN)]])
    assert.ok(inFiles(server, control).length > 0)
    assert.ok(
      (await inAnswers({ ...world, server: await startServer({ dataDir: server.dataDir }), planted: control })).length >
        2,
    )
  })

  test('with a PostgreSQL behind the server', { skip: noPostgres }, async () => {
    const schema = await testSchema()
    try {
      const server = await startServer({ dataDir: temporaryFolder(), env: { RUNYARD_DATABASE: schema.url } })
      const world = await plant(server)
      await everywhere(world)
      const tables = await schema.query('SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema()')
      assert.ok(tables.length > 10)
      for (const { name } of tables) {
        const rows = await schema.query(`SELECT t::text AS line FROM "${name}" AS t`)
        const dump = rows.map(({ line }) => String(line)).join('\n')
        assert.deepEqual(findings(world.planted, `table ${name}`, dump), [])
      }
      await server.stop()
    } finally {
      await schema.drop()
    }
  })
})
