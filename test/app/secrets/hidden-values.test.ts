/** Errors of a request never contain its secrets. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openRig } from '../../support/rig.ts'

const PLANTED = 'hunter2-planted'
const CREATE = 'mutation ($input: SecretCreateInput!) { secretCreate(input: $input) { id } }'
const REGISTRY = 'mutation ($input: SaveRegistryAuthInput) { saveRegistryAuth(input: $input) { id } }'
const TEMPLATE = 'mutation ($input: SaveTemplateInput) { saveTemplate(input: $input) { id } }'

/** Bodies for GraphQL with a mistake beside a secret. */
const GRAPHQL: readonly (string | object)[] = [
  { query: CREATE, variables: { input: { value: PLANTED } } },
  { query: CREATE, variables: { input: { name: 'x', value: { a: [PLANTED] } } } },
  { query: CREATE, variables: { input: { name: 'x', value: `${PLANTED}"\n\\`, more: 1 } } },
  { query: REGISTRY, variables: { input: { name: 'r', password: PLANTED } } },
  { query: TEMPLATE, variables: { input: { env: [{ value: PLANTED }] } } },
  { query: `mutation { secretCreate(input: { name: 3, value: "${PLANTED}" }) { id } }` },
  { query: `mutation { secretCreate(input: { name: "a", value: ${PLANTED} }) { id } }` },
  { query: `mutation { secretCreate(input: { name: "a", value: """${PLANTED}""" "${PLANTED}" }) { id } }` },
  { query: `mutation { secretCreate(input: { name: "a", value: "x" "${PLANTED}" }) { id } }` },
  { query: `mutation { secretCreate(input: "${PLANTED}") { id } }` },
  { query: `mutation { saveRegistryAuth(input: ["${PLANTED}"]) { id } }` },
  `{"query":"{ myself { id } }","variables":{"value":${PLANTED}}}`,
  `{"query":"mutation { secretCreate(input: { value: "${PLANTED}" }) { id } }"}`,
]

/** Bodies for REST and for jobs, likewise. */
const OTHERS: readonly [path: string, body: string | object][] = [
  ['/v2/account/secrets', { name: '-', value: PLANTED, more: 1 }],
  ['/v2/account/secrets', { name: 'a', value: [PLANTED] }],
  ['/v2/account/secrets', `{"name":"a","value":${PLANTED}}`],
  ['/v2/account/secrets', `{"name":"a","value":"${PLANTED}" "b"}`],
  ['/v2/account/secrets', PLANTED],
  ['/v2/registries', { name: 'r', username: 1, password: PLANTED }],
  ['/v1/containerregistryauth', { name: 'r', password: PLANTED }],
  ['/v2/serverless', { env: { A: PLANTED, 'B C': PLANTED } }],
  ['/v2/nothing/run', `{"input":{},"s3Config":${PLANTED}}`],
]

for (const body of GRAPHQL) {
  test(`GraphQL refuses without repeating a secret: ${JSON.stringify(body).slice(0, 90)}`, async t => {
    const rig = await openRig(t)
    const { json, text, headers } = await rig.ask('POST', '/graphql', { body })
    assert.ok(json.errors[0].message.length > 10, text)
    assert.equal(headers.get('content-length') ?? String(Buffer.byteLength(text)), String(Buffer.byteLength(text)))
    assert.equal(text.includes('planted'), false, text)
    assert.equal(JSON.stringify(rig.events).includes('planted'), false)
  })
}

for (const [path, body] of OTHERS) {
  test(`${path} refuses without repeating a secret: ${JSON.stringify(body).slice(0, 60)}`, async t => {
    const rig = await openRig(t)
    const endpoint = await rig.endpoint()
    const { status, text } = await rig.ask('POST', path.replace('nothing', endpoint), { body })
    assert.equal(status, 400, text)
    assert.equal(text.includes('planted'), false, text)
    assert.equal(JSON.stringify(rig.events).includes('planted'), false)
  })
}

test('a secret that exists already is refused without repeating the value', async t => {
  const rig = await openRig(t)
  const body = { name: 'a', value: PLANTED }
  assert.equal((await rig.ask('POST', '/v2/account/secrets', { body })).status, 201)
  const again = await rig.ask('POST', '/v2/account/secrets', { body })
  assert.deepEqual([again.status, again.text.includes('planted')], [409, false])
})

test('a mistake among very many secrets is reported without them', async t => {
  const rig = await openRig(t)
  const env = Array.from({ length: 5_000 }, (_, n) => ({ value: `${PLANTED}${n}` }))
  const { json, text } = await rig.ask('POST', '/graphql', { body: { query: TEMPLATE, variables: { input: { env } } } })
  assert.match(json.errors[0].message, /value: "\[hidden\]".*Field "key" of required type "String!" was not provided/)
  assert.ok(text.length < 20_000, text)
  assert.equal(text.includes('planted'), false)
})

test('a value in a document that comes by GET is hidden, too', async t => {
  const rig = await openRig(t)
  const query = `mutation { secretCreate(input: { name: 3, value: ["${PLANTED}", { a: "${PLANTED}" }] }) { id } }`
  const { json, text } = await rig.ask('GET', `/graphql?query=${encodeURIComponent(query)}`)
  assert.ok(json.errors.length > 0)
  assert.equal(text.includes('planted'), false, text)
})

test('a message that quotes a long value is a short one', async t => {
  const rig = await openRig(t)
  const value = { long: PLANTED.repeat(1_000) }
  const { json } = await rig.ask('POST', '/graphql', { body: { query: CREATE, variables: { input: { value } } } })
  assert.equal(json.errors[0].message, 'the request has errors that are too long to report')
})

test('a mistake beside a secret still gets its full message', async t => {
  const rig = await openRig(t)
  const input = { name: 'x', value: PLANTED, flashBootType: 'SLOW' }
  const { json } = await rig.ask('POST', '/graphql', { body: { query: CREATE, variables: { input } } })
  assert.deepEqual(
    json.errors.map(({ message }: { message: string }) => message),
    [
      'Variable "$input" got invalid value { name: "x", value: "[hidden]", flashBootType: "SLOW" }; ' +
        'Field "flashBootType" is not defined by type "SecretCreateInput".',
    ],
  )
})
