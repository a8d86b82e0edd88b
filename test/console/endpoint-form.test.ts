import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { curlCommand } from '../../console/pages/endpoint-form/curl.ts'
import { differences, findConflicts, makesRelease } from '../../console/pages/endpoint-form/difference.ts'
import {
  bodyFromDraft,
  changedBody,
  createBody,
  type Draft,
  draftFromBody,
  draftWith,
  merged,
  NEW_DRAFT,
  rebased,
} from '../../console/pages/endpoint-form/draft.ts'
import { parseEnv, repeatedNames, secretsIn, withVariables } from '../../console/pages/endpoint-form/env-text.ts'
import { SIMPLE_NAMES, simpleField } from '../../console/pages/endpoint-form/simple-fields.ts'
import type { RestMember, RestSchemas } from '../../src/api/dialect.ts'
import { ENDPOINT_MEMBERS } from '../../src/api/endpoint-fields.ts'
import { ENDPOINT_FIELDS } from '../../src/core/endpoints/endpoint.ts'

/** An endpoint as the API shows it, as far as the form reads it. */
const GPU_ENDPOINT = {
  id: 'abc',
  name: 'mine',
  type: 'QUEUE',
  gpu: { pools: ['ADA_24'], excludedTypes: ['NVIDIA L4'], count: 2, allowedCudaVersions: [], minCudaVersion: '12.4' },
  workers: { min: 0, max: 3, idleTimeout: 10 },
  scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
  dataCenterIds: [],
  networkVolumes: ['v1'],
  modelReferences: ['a/b'],
  corsOrigins: [],
  timeout: 300_000,
  flashboot: 'OFF',
  priority: 'normal',
  preemptible: false,
  args: '',
  disk: 20,
  env: { A: '1', B: '2' },
  image: 'me/worker:1',
  ports: ['80/http'],
  registry: null,
}
const BEFORE = draftFromBody(GPU_ENDPOINT)

test('the body of a new endpoint has what is needed and what is no default', () => {
  const draft: Draft = { ...NEW_DRAFT, name: 'hello', image: ' me/worker:1 ', max: '5', timeout: '30' }
  assert.deepEqual(createBody(draft), {
    name: 'hello',
    type: 'QUEUE',
    image: 'me/worker:1',
    cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
    workers: { max: 5 },
    scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
    timeout: 30_000,
  })
})

test('a load-balancing endpoint has a domain in its form, and a queue does not', () => {
  const scaling = { type: 'REQUEST_COUNT', requestCount: 4 }
  const shown = { ...GPU_ENDPOINT, type: 'LOAD_BALANCER', scaling, domain: null, browserUrl: null }
  const before = draftFromBody(shown)
  assert.deepEqual(changedBody(before, { ...before, domain: ' chat.example.org ' }), { domain: 'chat.example.org' })
  const named = draftFromBody({ ...shown, domain: 'chat.example.org' })
  assert.deepEqual([named.domain, changedBody(named, { ...named, domain: '' })], ['chat.example.org', { domain: null }])
  assert.equal(makesRelease([{ field: 'domain' }]), false)
  assert.ok(!('domain' in bodyFromDraft({ ...BEFORE, domain: 'chat.example.org' })))
})

test('a queue may let its jobs be paused, and any endpoint has a priority', () => {
  assert.deepEqual(changedBody(BEFORE, { ...BEFORE, priority: 'low', preemptible: 'true' }), {
    priority: 'low',
    preemptible: true,
  })
  const serving = { ...BEFORE, type: 'LOAD_BALANCER' as const }
  assert.deepEqual([bodyFromDraft(serving).priority, 'preemptible' in bodyFromDraft(serving)], ['normal', false])
  assert.equal(makesRelease([{ field: 'priority' }, { field: 'preemptible' }]), false)
})

test('the form of an endpoint without changes changes nothing', () => {
  assert.deepEqual(changedBody(BEFORE, BEFORE), {})
  const { id: _, ...shown } = GPU_ENDPOINT
  assert.deepEqual(bodyFromDraft(BEFORE), shown)
})

test('a change sends the members that changed, and the environment as a whole', () => {
  const after: Draft = {
    ...BEFORE,
    max: '7',
    minCuda: '',
    env: [
      { name: 'A', value: '1' },
      { name: '', value: '' },
    ],
  }
  assert.deepEqual(changedBody(BEFORE, after), {
    workers: { max: 7 },
    gpu: { minCudaVersion: '' },
    env: { A: '1' },
  })
})

test('excluded GPU types go along with their pools, since pools clear them', () => {
  assert.deepEqual(changedBody(BEFORE, { ...BEFORE, pools: ['ADA_24', 'AMPERE_24'] }), {
    gpu: { pools: ['ADA_24', 'AMPERE_24'], excludedTypes: ['NVIDIA L4'] },
  })
  assert.deepEqual(changedBody(BEFORE, { ...BEFORE, excludedTypes: [] }), { gpu: { pools: ['ADA_24'] } })
})

test('a share of a GPU is sent as a number, and its removal as null', () => {
  const shared = draftFromBody({ ...GPU_ENDPOINT, gpu: { ...GPU_ENDPOINT.gpu, count: 1, memoryGb: 8 } })
  assert.equal(shared.gpuMemory, '8')
  assert.deepEqual(changedBody(shared, { ...shared, gpuMemory: '6.5' }), { gpu: { memoryGb: 6.5 } })
  assert.deepEqual(changedBody(shared, { ...shared, gpuMemory: 'auto' }), { gpu: { memoryGb: 'auto' } })
  assert.deepEqual(changedBody(shared, { ...shared, gpuMemory: '' }), { gpu: { memoryGb: null } })
  assert.deepEqual(changedBody(BEFORE, { ...BEFORE, gpuCount: '1', gpuMemory: '8' }), {
    gpu: { count: 1, memoryGb: 8 },
  })
})

test('a queue that scales on its jobs sends no idle timeout', () => {
  const after: Draft = { ...BEFORE, scaling: 'REQUEST_COUNT', scalingValue: '4' }
  assert.deepEqual(changedBody(BEFORE, after), { scaling: { type: 'REQUEST_COUNT', requestCount: 4 } })
})

test('what is no number reaches the server as it was typed, and a removed number as null', () => {
  assert.deepEqual(changedBody(BEFORE, { ...BEFORE, disk: '1x', timeout: '' }), { disk: '1x', timeout: null })
})

test('the share of a canary is sent beside the change', () => {
  assert.deepEqual(changedBody(BEFORE, { ...BEFORE, image: 'me/worker:2', canary: '10' }), {
    image: 'me/worker:2',
    rollout: { canary: 10 },
  })
})

test('a JSON body becomes the form that means it', () => {
  const body = { workers: { max: 9 }, gpu: { pools: ['AMPERE_24'] }, env: { C: '3' }, rollout: { canary: 20 } }
  const { draft, unknown } = draftWith(BEFORE, body)
  assert.deepEqual(unknown, [])
  assert.deepEqual([draft.max, draft.pools, draft.excludedTypes, draft.canary], ['9', ['AMPERE_24'], [], '20'])
  assert.deepEqual(changedBody(BEFORE, draft), body)
})

test('members of a JSON body that no form can mean are named', () => {
  assert.deepEqual(draftWith(BEFORE, { workers: 'many', color: 'red', disk: 30, scaling: null }).unknown, [
    'workers',
    'color',
    'scaling',
  ])
})

test('differences name each member and each variable, and say whether workers see them', () => {
  const changed = differences(GPU_ENDPOINT, merged(GPU_ENDPOINT, { workers: { max: 5 }, env: { A: '1', C: '' } }))
  assert.deepEqual(changed, [
    { field: 'workers.max', old: '3', new: '5' },
    { field: 'env.B', old: '2', new: null },
    { field: 'env.C', old: null, new: '' },
  ])
  assert.equal(makesRelease(changed), true)
  assert.equal(makesRelease(changed.slice(0, 1)), false)
  assert.equal(makesRelease([{ field: 'timeout' }, { field: 'name' }, { field: 'scaling.queueDelay' }]), false)
})

test('new pools without excluded types are shown to clear them', () => {
  assert.deepEqual(differences(GPU_ENDPOINT, merged(GPU_ENDPOINT, { gpu: { pools: ['AMPERE_24'] } })), [
    { field: 'gpu.pools', old: 'ADA_24', new: 'AMPERE_24' },
    { field: 'gpu.excludedTypes', old: 'NVIDIA L4', new: null },
  ])
})

test('variables of two people are merged, and what both changed is a conflict', () => {
  const latest = { ...GPU_ENDPOINT, disk: 30, env: { A: 'theirs', B: '2', D: '4' } }
  const mine = { disk: 40, env: { A: '1', C: '3' } }
  const merge = rebased(GPU_ENDPOINT, mine, latest)
  assert.deepEqual(merge, { disk: 40, env: { A: 'theirs', D: '4', C: '3' } })
  const conflicts = findConflicts(
    differences(GPU_ENDPOINT, merged(GPU_ENDPOINT, mine)),
    differences(GPU_ENDPOINT, latest),
  )
  assert.deepEqual(conflicts, ['disk'])
})

test('a .env text becomes variables, with quotes, comments and several lines', () => {
  const { variables, problems } = parseEnv(
    [
      '# comment',
      'A=1',
      'export B = two words # why',
      `C='single # no comment'`,
      'D="line\\nnext \\"q\\""',
      'KEY="-----BEGIN',
      'abc',
      '-----END"',
      'EMPTY=',
      'URL=https://x.example/#part',
      'A=again',
    ].join('\r\n'),
  )
  assert.deepEqual(problems, [])
  assert.deepEqual(Object.fromEntries(variables.map(({ name, value }) => [name, value])), {
    A: 'again',
    B: 'two words',
    C: 'single # no comment',
    D: 'line\nnext "q"',
    KEY: '-----BEGIN\nabc\n-----END',
    EMPTY: '',
    URL: 'https://x.example/#part',
  })
})

test('lines of a .env text that are no variables are named, and the rest is read', () => {
  const { variables, problems } = parseEnv('hello\n1A=2\nB="open\nC=3')
  assert.deepEqual(problems, [
    'Line 1 has no NAME=value.',
    'Line 2 has no NAME=value.',
    'Line 3: the quote has no end.',
  ])
  assert.deepEqual(variables, [{ name: 'C', value: '3' }])
})

test('added variables replace those of the same name in their place', () => {
  const before = [
    { name: 'A', value: '1' },
    { name: '', value: '' },
    { name: 'B', value: '2' },
  ]
  const added = [
    { name: 'B', value: 'new' },
    { name: 'C', value: '3' },
  ]
  assert.deepEqual(withVariables(before, added), [{ name: 'A', value: '1' }, ...added])
  assert.deepEqual(repeatedNames([...before, { name: ' A', value: '' }]), ['A'])
  assert.deepEqual(secretsIn('{{ RUNPOD_SECRET_db/pass }}:{{RUNPOD_SECRET_b}}'), ['db/pass', 'b'])
})

test('the command of a call reaches the shell as it is meant', () => {
  const body = { name: `it's $HOME "x" \\ \n` }
  const command = curlCommand('POST', 'http://localhost:1/v2/serverless', body)
  const script = `curl() { printf '%s' "\${@: -1}"; }; ${command}`
  assert.deepEqual(JSON.parse(execFileSync('bash', ['-c', script], { encoding: 'utf8' })), body)
  assert.match(command, /-H "Authorization: Bearer \$RUNYARD_API_KEY"/)
})

test('the form agrees with the server on defaults, and on which changes make a release', () => {
  for (const name of SIMPLE_NAMES) {
    const [field, member] = Object.entries(ENDPOINT_MEMBERS).find(([, { rest }]) => rest?.name === name)!
    const { isSeen, fallback } = simpleField(name)
    assert.equal(ENDPOINT_FIELDS[field as keyof typeof ENDPOINT_FIELDS].change === 'release', isSeen, name)
    const { created } = (member.rest as RestMember<string, RestSchemas>).schemas
    assert.deepEqual(created.parse(undefined) ?? null, fallback, name)
  }
})
