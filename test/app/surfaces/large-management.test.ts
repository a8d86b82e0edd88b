/** Large requests of the management APIs: a long text is taken, a great many values are not. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MAX_DOCUMENT_VALUES } from '../../../src/core/bodies/document-size.ts'
import { openRig } from '../../support/rig.ts'

const QUERY = 'mutation ($input: SecretCreateInput!) { secretCreate(input: $input) { name } }'
const MANY = Array.from({ length: MAX_DOCUMENT_VALUES + 1 }, () => [[], []])
const LONG = 'x'.repeat(300_000)

test('GraphQL refuses a request with a great many values, and a large one that is not JSON', async t => {
  const rig = await openRig(t)
  const ask = (body: unknown, headers = {}) => rig.ask('POST', '/graphql', { body, headers })
  const many = await ask({ query: '{ myself { id } }', variables: { many: MANY } })
  assert.deepEqual(
    [many.status, many.json.errors[0].message],
    [400, 'the request cannot be read: it has more than 20000 values'],
  )
  const form = await ask({ query: '{ myself { id } }', variables: { LONG } }, { 'content-type': 'text/plain' })
  assert.deepEqual([form.status, form.json.errors.length], [413, 1])
  const list = await ask([LONG])
  assert.ok(list.json.errors.length > 0)
})

test('GraphQL answers a large request as a small one', async t => {
  const rig = await openRig(t)
  const ask = (input: unknown) => rig.ask('POST', '/graphql', { body: { query: QUERY, variables: { input } } })
  assert.deepEqual((await ask({ name: 'LARGE', value: LONG })).json, { data: { secretCreate: { name: 'LARGE' } } })
  const wrong = await ask({ name: 'WRONG', value: { LONG } })
  assert.equal(wrong.json.errors[0].message, 'the request has errors that are too long to report')
})

test('a document of more than a megabyte is refused: long values are variables', async t => {
  const rig = await openRig(t)
  const { json } = await rig.ask('POST', '/graphql', {
    body: { query: `{ myself { id } } #${'x'.repeat(1024 * 1024)}` },
  })
  assert.match(json.errors[0].message, /more than 1048576 characters; send long values as variables/)
})

test('REST reads large bodies with the same sentences', async t => {
  const rig = await openRig(t)
  const ask = (body: unknown) => rig.ask('POST', '/v2/account/secrets', { body })
  assert.equal((await ask({ name: 'LARGE', value: LONG })).status, 201)
  const many = await ask({ name: 'MANY', value: MANY })
  assert.equal(many.status, 400)
  assert.match(many.text, /the body cannot be read: it has more than 20000 values/)
  const wrong = await ask({ name: LONG, other: 1 })
  assert.equal(wrong.status, 400)
  assert.match(wrong.text, /additional properties 'other' not allowed/)
})
