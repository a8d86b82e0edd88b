/** GraphQL as a surface: what it takes, what it bounds, what browsers get. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  buildClientSchema,
  buildSchema,
  getIntrospectionQuery,
  type IntrospectionOptions,
  lexicographicSortSchema,
  printSchema,
} from 'graphql'
import { schemaText } from '../../../scripts/schema.ts'
import { typeDefs } from '../../../src/api/graphql/sdl/schema.ts'
import { DEFAULT_OWNER, type EndpointId, type TemplateId } from '../../../src/core/ids.ts'
import { makeEndpoint, makeTemplate } from '../../contract/store-world.ts'
import { type Answer, type Asking, openRig, type Rig } from '../../support/rig.ts'

/** A request with this document. */
function post(rig: Rig, query: string, asking: Asking = {}): Promise<Answer> {
  return rig.ask('POST', '/graphql', { ...asking, body: { query } })
}

/** The first sentence with which a document is refused. */
async function refusal(rig: Rig, query: string, asking: Asking = {}): Promise<string> {
  const { json } = await post(rig, query, asking)
  assert.ok(json.errors !== undefined, 'it was not refused')
  return json.errors[0].message
}

test('the schema is valid', () => {
  // A server takes its schema as valid.
  assert.doesNotThrow(() => buildSchema(typeDefs.join('\n')))
})

test('the depth, length, aliases and cost of a document are limited', async t => {
  const rig = await openRig(t)
  const deep = `{ myself { endpoints { template ${'{ a '.repeat(20)}${'}'.repeat(20)} } } }`
  const aliases = Array.from({ length: 51 }, (_, index) => `a${index}: myself { id }`).join(' ')
  const dear = Array.from(
    { length: 50 },
    (_, index) => `a${index}: myself { endpoints { pods { machine { location } } } }`,
  )
  const long = Array.from({ length: 20_001 }, () => 'id').join(' ')
  assert.match(await refusal(rig, deep), /depth limit of 12 exceeded/i)
  assert.match(await refusal(rig, `{ ${aliases} }`), /^Aliases limit of 50 exceeded, found 51/)
  assert.match(await refusal(rig, `{ ${dear.join(' ')} }`), /^Query Cost limit of 1000 exceeded/)
  assert.match(await refusal(rig, `{ myself { ${long} } }`), /more than? 20000 tokens|more that 20000 tokens/)
  for (const query of [deep, `{ ${aliases} }`, `{ ${dear.join(' ')} }`]) {
    assert.equal((await post(rig, query)).status, 200, 'clients read the sentence only then')
  }
})

test('without a key a request is small, with one a secret of many megabytes goes through', async t => {
  const rig = await openRig(t)
  const query = 'mutation ($input: SecretCreateInput!) { secretCreate(input: $input) { name } }'
  const body = { query, variables: { input: { name: 'BIG', value: 'x'.repeat(15 * 1024 * 1024) } } }
  assert.equal((await rig.ask('POST', '/graphql', { body, key: null })).status, 413)
  assert.deepEqual((await rig.ask('POST', '/graphql', { body })).json, { data: { secretCreate: { name: 'BIG' } } })
})

test('a number is taken from a variable of type Int as from one of type Float, and from no other', async t => {
  const rig = await openRig(t)
  const id = await rig.endpoint()
  const ask = (declared: string, value: unknown) => {
    const query = `mutation ($number: ${declared}) { saveEndpoint(input: { id: "${id}", name: "e", scalerValue: $number }) { scalerValue } }`
    return rig.ask('POST', '/graphql', { body: { query, variables: { number: value } } })
  }
  const saved = async (declared: string, value: unknown) =>
    (await ask(declared, value)).json.data.saveEndpoint.scalerValue
  assert.deepEqual([await saved('Int', 7), await saved('Int!', 8), await saved('Int = 9', undefined)], [7, 8, 9])
  assert.deepEqual([await saved('Float', 0.5), await saved('Float!', 3)], [0.5, 3])
  const refused = async (declared: string, value: unknown) => (await ask(declared, value)).json.errors[0].message
  assert.match(await refused('Int', 0.5), /Int cannot represent non-integer value: 0.5/)
  for (const declared of ['String', 'ID', 'Boolean', '[Int]', '[Float]']) {
    assert.match(await refused(declared, null), /used in position expecting type "Float"/, declared)
  }
  const whole = `mutation ($min: Float) { saveEndpoint(input: { id: "${id}", name: "e", workersMin: $min }) { id } }`
  assert.match(await refusal(rig, whole), /of type "Float" used in position expecting type "Int"/)
})

test('volumes of an endpoint, which SDK 2.0 always sends, are empty or exist', async t => {
  const rig = await openRig(t)
  const id = await rig.endpoint({ volumes: [], networkVolumeIds: [] })
  const query = 'mutation ($input: EndpointInput!) { saveEndpoint(input: $input) { id } }'
  const volumes = [{ volumeId: 'v', volumeType: 'OBJECT_STORE_VOLUME' }]
  const { json } = await rig.ask('POST', '/graphql', {
    body: { query, variables: { input: { id, name: 'e', volumes } } },
  })
  assert.match(json.errors[0].message, /volume v not found/)
})

test('what Runyard has not is an empty list or null, and a change of it is refused', async t => {
  const rig = await openRig(t)
  const query = `{ listings(input: {}) { id } listing(id: "a") { id } allAiApiPublicConfigs { id } myModels { id } models { id } cpuTypes { id } machines { id } }`
  const lists = { listings: [], allAiApiPublicConfigs: [], myModels: [], models: [], cpuTypes: [], machines: [] }
  assert.deepEqual(await rig.graphql(query), { ...lists, listing: null })
  const added = 'mutation { addModelToRepo(input: { name: "a" }) { success } }'
  assert.match(await refusal(rig, added), /^not supported: Runyard has no model repository/)
})

test('a query may come by GET, a mutation not', async t => {
  const rig = await openRig(t)
  const get = (query: string) => rig.ask('GET', `/graphql?query=${encodeURIComponent(query)}`)
  const { status, json } = await get('{ myself { id } }')
  assert.deepEqual([status, json], [200, { data: { myself: { id: DEFAULT_OWNER } } }])
  const refused = await get('mutation { secretCreate(input: { name: "a", value: "b" }) { id } }')
  assert.deepEqual([refused.status, refused.headers.get('allow')], [405, 'POST'])
  assert.match(refused.json.errors[0].message, /POST/)
  assert.deepEqual(await rig.store.secrets.list(DEFAULT_OWNER), [])
})

test('a request that cannot be read as GraphQL over HTTP gets a message that says what to send', async t => {
  const rig = await openRig(t)
  const body = JSON.stringify({ query: '{ myself { id } }' })
  const refused = async (method: string, asking: Asking) => {
    const { status, json } = await rig.ask(method, '/graphql', asking)
    return [status, json.errors[0].message]
  }
  const form = { type: 'application/x-www-form-urlencoded', body: 'query={myself{id}}' }
  assert.deepEqual(await refused('POST', form), [415, 'the request must be application/json, in UTF-8'])
  const [notAcceptable] = await refused('POST', { headers: { accept: 'image/png' }, body })
  assert.equal(notAcceptable, 406)
  assert.deepEqual(await refused('PUT', { body }), [405, 'send queries by GET or POST, and mutations by POST'])
  for (const text of ['', '{', '[]', '{}', '{"query": 1}', '{"query": "{ myself { id } }", "variables": []}']) {
    const [status, message] = await refused('POST', { body: text })
    assert.deepEqual([status, typeof message], [400, 'string'], text)
  }
})

test('a mistake in a document is reported with its place', async t => {
  const rig = await openRig(t)
  for (const query of ['mutation {', '{ nosuch }', '{ myself { id } ', '']) {
    const { status, json } = await post(rig, query)
    assert.ok([200, 400].includes(status), query)
    assert.equal(typeof json.errors[0].message, 'string')
    assert.equal(json.data, undefined)
  }
})

test('fields of one name, and fragments within fragments, are limited before a document is validated', async t => {
  const rig = await openRig(t)
  const chain = (length: number, last: string) =>
    `{ ...f0 } ${Array.from({ length }, (_, n) => `fragment f${n} on Query { ...f${n + 1} }`).join(' ')} fragment f${length} on Query { ${last} }`
  const doubled = Array.from(
    { length: 20 },
    (_, n) => `fragment f${n} on User { a: endpoints { id } ...f${n + 1} ...f${n + 1} }`,
  )
  const documents: readonly [document: string, sentence: RegExp][] = [
    [chain(2_200, '__typename'), /^the document has more than 50 operations and fragments$/],
    [chain(40, '...f0'), /^Cannot spread fragment "f0" within itself/],
    [
      `{ myself { ...f } } fragment f on User { endpoints { template { ...f } } }`,
      /cannot be spread|lead back to themselves/,
    ],
    [`{ ${'__typename '.repeat(9_000)} }`, /^the document has too many fields of one name in one place/],
    [`{ ${'gpuTypes(input: { id: "x" }) { id } '.repeat(400)} }`, /^the document has too many fields of one name/],
    [`{ __typename }${'\n'.repeat(10_000)}`, /^the document has more than 10000 lines$/],
  ]
  for (const [document, sentence] of documents) {
    const { status, json } = await post(rig, document, { key: null })
    assert.equal(status, 200)
    assert.match(json.errors[0].message, sentence)
  }
  assert.deepEqual(rig.happened('request.failed'), [])
  assert.match(
    await refusal(rig, `{ myself { ...f0 } } ${doubled.join(' ')} fragment f20 on User { id }`),
    /depth limit/,
  )
  const wide = Array.from({ length: 49 }, (_, n) => `a${n}: myself { id endpoints { id name } }`).join(' ')
  assert.equal(Object.keys(await rig.graphql(`{ ${wide} }`)).length, 49)
})

test('what clients ask about the schema is answered without a key, and the same again', async t => {
  const rig = await openRig(t)
  const served = printSchema(lexicographicSortSchema(buildSchema(schemaText())))
  const named = (options: IntrospectionOptions) => getIntrospectionQuery({ ...options })
  const questions = [
    named({}),
    named({ descriptions: false }),
    named({ inputValueDeprecation: true, oneOf: true, schemaDescription: true, specifiedByUrl: true }),
    named({ directiveIsRepeatable: true }).replaceAll(/\s+/g, ' '),
  ]
  for (const query of [...questions, ...questions]) {
    const { json } = await post(rig, query, { key: null })
    assert.equal(json.errors, undefined)
    if (query === questions[2]) {
      const schema = lexicographicSortSchema(buildClientSchema(json.data))
      assert.equal(printSchema(schema), served)
    }
  }
  const one = '{ __type(name: "EndpointInput") { inputFields { name type { name kind ofType { name } } } } }'
  assert.ok((await post(rig, one, { key: null })).json.data.__type.inputFields.length > 5)
  assert.deepEqual((await post(rig, '{ __typename }', { key: null })).json, { data: { __typename: 'Query' } })
})

test('the schema is asked for once, without aliases, and without parts of types within parts of types', async t => {
  const rig = await openRig(t)
  const aliased = Array.from({ length: 49 }, (_, n) => `a${n}: __schema { types { name fields { name } } }`).join(' ')
  const documents: readonly [document: string, sentence: RegExp][] = [
    [`{ ${aliased} }`, /^a document asks for __schema or __type once, without an alias$/],
    ['{ a: __schema { types { name } } }', /once, without an alias/],
    [
      '{ ...a ...b } fragment a on Query { __schema { types { name } } } fragment b on Query { b: __schema { types { name } } }',
      /once/,
    ],
    [
      '{ __schema { types { a: fields { name } b: fields { name } } } }',
      /^a question about the schema has no aliases$/,
    ],
    ['{ __schema { types { fields { type { fields { name } } } } } }', /^fields of a type that another one refers to/],
    [
      '{ __schema { types { ...t } } } fragment t on __Type { possibleTypes { ...u } } fragment u on __Type { ofType { ...v } } fragment v on __Type { enumValues { name } }',
      /^enumValues of a type that another one refers to/,
    ],
  ]
  for (const [document, sentence] of documents) {
    for (const asking of [{}, { key: null }]) {
      const { status, text, json } = await post(rig, document, asking)
      assert.match(json.errors[0].message, sentence)
      assert.ok(status === 200 && text.length < 20_000)
    }
  }
})

test('anybody can ask for the schema', async t => {
  const rig = await openRig(t)
  const query = '{ __schema { queryType { name } types { name fields { name type { ofType { ofType { name } } } } } } }'
  for (const asking of [{}, { key: null }]) {
    const { json } = await post(rig, query, asking)
    assert.equal(json.data.__schema.queryType.name, 'Query')
  }
})

test('a browser gets GraphiQL, which loads nothing from elsewhere and knows no key', async t => {
  const rig = await openRig(t)
  const headers = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }
  const page = await rig.ask('GET', '/graphql', { headers, key: null })
  assert.deepEqual([page.status, page.headers.get('content-type')], [200, 'text/html; charset=utf-8'])
  const policy = page.headers.get('content-security-policy') ?? ''
  assert.match(policy, /^default-src 'none'; .*connect-src 'self'/)
  assert.doesNotMatch(policy, /http|\*/)
  assert.ok(page.text.includes('<title>Runyard GraphQL</title>'))
  assert.ok(!page.text.includes('rpa_test'))
  const data = await rig.ask('GET', '/graphql?query={myself{id}}', { headers: { accept: '*/*' }, key: null })
  assert.deepEqual(data.json, { data: { myself: null } })
})

test('the headers that GraphiQL starts with make an anonymous caller, not one with a bad key', async t => {
  const rig = await openRig(t)
  const { status, json } = await post(rig, '{ myself { id } }', { key: null, headers: { authorization: 'Bearer ' } })
  assert.deepEqual([status, json], [200, { data: { myself: null } }])
})

test('an internal error is reported without its cause, which the log has', async t => {
  const rig = await openRig(t)
  rig.failNext('secrets.list', 'before')
  const away = await post(rig, '{ myself { secrets { id } } }')
  assert.equal(away.status, 503)
  assert.equal(away.json.errors.length, 1)
  assert.equal(rig.happened('request.failed').length, 1)
})

test('a thousand endpoints with their templates, workers and volumes take few reads', async t => {
  const rig = await openRig(t)
  const owner = DEFAULT_OWNER
  for (let n = 0; n < 1_000; n += 1) {
    const own = makeTemplate(`t${n}`, { owner, listed: n % 2 === 0, name: `name ${n}` })
    await rig.store.endpoints.insert(makeEndpoint(`e${n}`, { owner, templateId: own.id, workersMax: 0 }), own)
  }
  const reads = ['templates.find', 'templates.ofEndpoints', 'workers.list', 'volumes.find'] as const
  const before = reads.map(name => rig.calls(name))
  const { endpoints } = (
    await rig.graphql(
      '{ myself { endpoints { id templateId template { id name } pods { id } networkVolume { id } } } }',
    )
  ).myself
  assert.equal(endpoints.length, 1_000)
  for (const { templateId, template } of endpoints) assert.equal(template.id, templateId)
  assert.deepEqual(
    reads.map((name, index) => rig.calls(name) - before[index]!),
    [0, 0, 0, 0],
  )
  assert.equal(rig.calls('templates.ofThese'), 5)
})

test('each endpoint has a key that opens its jobs and nothing else', async t => {
  const rig = await openRig(t)
  const [one, other] = [await rig.endpoint(), await rig.endpoint()]
  const query = '{ myself { endpoints { id aiKey } } }'
  const { endpoints } = (await rig.graphql(query)).myself
  const key = endpoints.find(({ id }: { id: EndpointId }) => id === one).aiKey
  assert.match(key, /^rpa_/)
  assert.deepEqual((await rig.graphql(query)).myself.endpoints, endpoints, 'it stays the same')
  const run = { body: { input: {} }, key }
  assert.equal((await rig.ask('POST', `/v2/${one}/run`, run)).status, 200)
  assert.equal((await rig.ask('POST', `/v2/${other}/run`, run)).status, 403)
  assert.match(await refusal(rig, '{ myself { id } }', { key }), /no read right/)
  const reader = await rig.addKey('rpa_reader', { scope: { type: 'read-only' } })
  const seen = await post(rig, query, { key: reader })
  assert.deepEqual(
    seen.json.data.myself.endpoints.map(({ aiKey }: { aiKey: string | null }) => aiKey),
    [null, null],
  )
})

test('a key that may only read changes nothing', async t => {
  const rig = await openRig(t)
  const reader = await rig.addKey('rpa_reader', { scope: { type: 'read-only' } })
  const create = 'mutation { secretCreate(input: { name: "a", value: "b" }) { id } }'
  const { status, json } = await post(rig, create, { key: reader })
  assert.deepEqual([status, json.data], [200, { secretCreate: null }])
  assert.match(json.errors[0].message, /no write right/)
  assert.equal((await post(rig, create, { key: null })).status, 401)
})

const NO_PODS = /^not supported: Runyard runs serverless endpoints and tasks of apps.*pods/
const UNSUPPORTED = [
  'mutation { podFindAndDeployOnDemand(input: { name: "a", cloudType: ALL, dataCenterId: null, env: [{ key: "a" }] }) { id imageName env machineId machine { podHostId } } }',
  'mutation { deployCpuPod(input: { name: "a", instanceId: "cpu3c-2-4" }) { id } }',
  'mutation { podStop(input: { podId: "a" }) { id desiredStatus } }',
  'mutation { podResume(input: { podId: "a", gpuCount: 1 }) { id desiredStatus imageName env machineId machine { podHostId } } }',
]

for (const query of UNSUPPORTED) {
  test(`there are no pods but tasks: ${query.slice(11, 40)}`, async t => {
    const rig = await openRig(t)
    const { status, json } = await post(rig, query)
    assert.equal(status, 200)
    assert.match(json.errors[0].message, NO_PODS)
    assert.deepEqual(await rig.graphql('{ myself { pods { id desiredStatus } } pod(input: { podId: "a" }) { id } }'), {
      myself: { pods: [] },
      pod: null,
    })
  })
}

test('a template of another account is seen when it is public, without its registry', async t => {
  const rig = await openRig(t)
  const { id: registry } = (
    await rig.graphql('mutation { saveRegistryAuth(input: { name: "hub", username: "u", password: "p" }) { id } }')
  ).saveRegistryAuth
  const id = await rig.template({ isPublic: true, containerRegistryAuthId: registry })
  const hidden = await rig.template()
  const query = `query ($id: String!) { podTemplate(id: $id) { id containerRegistryAuthId isPublic }
    podTemplates(input: { isRunpod: false }) { id } }`
  const mine = await rig.graphql(query, { id })
  assert.deepEqual(mine.podTemplate, { id, containerRegistryAuthId: registry, isPublic: true })
  const ask = async (wanted: TemplateId) =>
    (await rig.ask('POST', '/graphql', { key: null, body: { query, variables: { id: wanted } } })).json.data
  assert.deepEqual(await ask(id), {
    podTemplate: { id, containerRegistryAuthId: null, isPublic: true },
    podTemplates: [{ id }],
  })
  assert.equal((await ask(hidden)).podTemplate, null)
  assert.deepEqual((await rig.graphql('{ podTemplates(input: { isRunpod: true }) { id } }')).podTemplates, [])
})
