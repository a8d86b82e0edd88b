/** Two concurrent changes of one record: each names its fields, so both remain. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DEFAULT_OWNER } from '../../../src/core/ids.ts'
import { registryPlace, secretPlace } from '../../../src/core/secrets/seals.ts'
import { openRig, type Rig } from '../../support/rig.ts'

// biome-ignore lint/suspicious/noExplicitAny: answers of REST, as they are
type Shown = any

interface Thing {
  readonly what: string
  /** Makes it and gives its path. */
  readonly make: (rig: Rig) => Promise<string>
  /** Two requests that say different things about it. */
  readonly changes: readonly [Change, Change]
  /** Value to compare after both changes. */
  readonly both: (shown: Shown, rig: Rig) => unknown
  readonly wanted: unknown
}

type Change = (rig: Rig, path: string) => Promise<Shown>

const rest =
  (body: object): Change =>
  (rig, path) =>
    rig.ask('PATCH', path, { body })

const old =
  (body: object): Change =>
  (rig, path) =>
    rig.ask('PATCH', path.replace('/v2/serverless/', '/v1/endpoints/'), { body })

const graphql =
  (input: object): Change =>
  (rig, path) => {
    const query = 'mutation ($input: EndpointInput!) { saveEndpoint(input: $input) { id } }'
    const variables = { input: { id: path.split('/').at(-1), name: 'e', ...input } }
    return rig.ask('POST', '/graphql', { body: { query, variables } })
  }

const made =
  (path: string, body: object) =>
  async (rig: Rig): Promise<string> => {
    const { status, json, text } = await rig.ask('POST', path, { body })
    assert.equal(status, 201, text)
    return `${path}/${json.id}`
  }

const endpoint = async (rig: Rig) =>
  `/v2/serverless/${await rig.endpoint({ instanceIds: null, gpuIds: 'ADA_24', workersMax: 0 })}`

const THINGS: readonly Thing[] = [
  {
    what: 'an endpoint through REST',
    make: endpoint,
    changes: [rest({ gpu: { count: 3 } }), rest({ gpu: { pools: ['AMPERE_16'] } })],
    both: ({ gpu }) => [gpu.count, gpu.pools],
    wanted: [3, ['AMPERE_16']],
  },
  {
    what: 'what an endpoint runs',
    make: endpoint,
    changes: [rest({ image: 'image:9' }), rest({ args: 'go' })],
    both: ({ image, args }) => [image, args],
    wanted: ['image:9', 'go'],
  },
  {
    what: 'the variables of an endpoint',
    make: async rig => {
      const path = await endpoint(rig)
      await rig.ask('PATCH', path, { body: { env: { KEPT: '1', OLD: '2', GONE: '3' } } })
      return path
    },
    changes: [rest({ envChanges: { NEW: '4', GONE: null } }), rest({ envChanges: { OLD: '5', __proto__x: '6' } })],
    both: ({ env }) => env,
    wanted: { KEPT: '1', OLD: '5', NEW: '4', __proto__x: '6' },
  },
  {
    what: 'the variables of a template',
    make: made('/v2/templates', { name: 't', image: 'image:1', env: { KEPT: '1', GONE: '3' } }),
    changes: [rest({ envChanges: { NEW: '4' } }), rest({ envChanges: { GONE: null, ABSENT: null } })],
    both: ({ env }) => env,
    wanted: { KEPT: '1', NEW: '4' },
  },
  {
    what: 'an endpoint through GraphQL',
    make: endpoint,
    changes: [graphql({ gpuCount: 3 }), graphql({ gpuIds: 'AMPERE_16' })],
    both: ({ gpu }) => [gpu.count, gpu.pools],
    wanted: [3, ['AMPERE_16']],
  },
  {
    what: 'an endpoint through version 1',
    make: endpoint,
    changes: [old({ gpuCount: 3 }), old({ gpuTypeIds: ['NVIDIA GeForce RTX 5090'] })],
    both: ({ gpu }) => [gpu.count, gpu.pools],
    wanted: [3, ['ADA_32_PRO']],
  },
  {
    what: 'a template',
    make: made('/v2/templates', { name: 't', image: 'image:1', env: { A: '1' } }),
    changes: [rest({ image: 'image:9' }), rest({ env: { B: '2' } })],
    both: ({ image, env }) => [image, env],
    wanted: ['image:9', { B: '2' }],
  },
  {
    what: 'a volume',
    make: made('/v2/network-volumes', { name: 'v', size: 10, dataCenter: 'EU-RO-1' }),
    changes: [rest({ name: 'w' }), rest({ size: 20 })],
    both: ({ name, size }) => [name, size],
    wanted: ['w', 20],
  },
  {
    what: 'a key',
    make: made('/v2/account/keys', { name: 'k' }),
    changes: [rest({ disabled: true }), rest({ name: 'renamed' })],
    both: ({ disabled, name }) => [disabled, name],
    wanted: [true, 'renamed'],
  },
  {
    what: 'a secret',
    make: made('/v2/account/secrets', { name: 's', value: 'one' }),
    changes: [rest({ description: 'mine' }), rest({ value: 'two' })],
    both: async ({ description, valueLastUpdatedAt }, rig) => [
      ...[description, valueLastUpdatedAt !== null],
      rig.vault.open(
        (await rig.store.secrets.sealedValues(DEFAULT_OWNER, ['s'])).get('s')!,
        secretPlace(DEFAULT_OWNER, 's'),
      ),
    ],
    wanted: ['mine', true, 'two'],
  },
]

for (const { what, make, changes, both, wanted } of THINGS) {
  test(`two changes of ${what} at once are both kept, in either order`, async t => {
    for (const order of [changes, changes.toReversed()]) {
      const rig = await openRig(t)
      const path = await make(rig)
      const answers = await Promise.all(order.map(change => change(rig, path)))
      for (const { status, text } of answers) assert.equal(status, 200, text)
      assert.deepEqual(await both((await rig.ask('GET', path)).json, rig), wanted)
    }
  })
}

test('two changes of a registry credential at once are both kept', async t => {
  const rig = await openRig(t)
  const { id } = (await rig.ask('POST', '/v2/registries', { body: { name: 'r', username: 'u', password: 'p' } })).json
  const save = 'mutation ($input: UpdateRegistryAuthInput) { updateRegistryAuth(input: $input) { id } }'
  await Promise.all([
    rig.graphql(save, { input: { id, username: 'v' } }),
    rig.graphql(save, { input: { id, password: 'q' } }),
    rig.graphql(save, { input: { id, name: 's' } }),
  ])
  const found = await rig.store.registries.find(DEFAULT_OWNER, id)
  const sealed = await rig.store.registries.sealedPassword(DEFAULT_OWNER, id)
  assert.deepEqual(
    [found?.name, found?.username, rig.vault.open(sealed!, registryPlace(DEFAULT_OWNER, id))],
    ['s', 'v', 'q'],
  )
})

test('changed variables follow the rules of variables, and cannot be beside all of them', async t => {
  const rig = await openRig(t)
  const path = await endpoint(rig)
  for (const [body, problem] of [
    [{ env: {}, envChanges: {} }, /envChanges: cannot be beside env/],
    [{ envChanges: { '1X': 'a' } }, /env: .*'1X'.* is not a variable name|env: is not a variable name/],
    [{ envChanges: { X: 1 } }, /envChanges/],
    [{ envChanges: Object.fromEntries(Array.from({ length: 201 }, (_, n) => [`X${n}`, null])) }, /at most 200/],
  ] as const) {
    const { status, text } = await rig.ask('PATCH', path, { body })
    assert.equal(status, 400, text)
    assert.match(text, problem)
  }
  await rig.ask('PATCH', path, { body: { env: { A: '1' } } })
  const { json: template } = await rig.ask('POST', '/v2/templates', {
    body: { name: 't', image: 'image:2', serverless: true, env: { B: '2', C: '3' } },
  })
  const tried = await rig.ask('PATCH', `${path}?dryRun=true`, { body: { envChanges: { D: '4' } } })
  assert.deepEqual(tried.json.env, { A: '1', D: '4' })
  const applied = await rig.ask('PATCH', path, { body: { templateId: template.id, envChanges: { C: null, D: '4' } } })
  assert.deepEqual([applied.json.image, applied.json.env], ['image:2', { B: '2', D: '4' }])
})
