import assert from 'node:assert/strict'
import { test } from 'node:test'
import { graphqlSentence } from '../../../src/api/field-names.ts'
import {
  envProblems,
  TEMPLATE_DEFAULTS,
  type TemplateInput,
  templateProblems,
} from '../../../src/core/endpoints/template.ts'
import { type FieldProblem, problemSentence } from '../../../src/core/field-problem.ts'
import type { EndpointId, VolumeId, WorkerId } from '../../../src/core/ids.ts'
import { resolveSecrets, secretNames, secretProblems } from '../../../src/core/secrets/secret.ts'
import { type Placement, UNPLACED } from '../../../src/core/workers/placement.ts'
import { protocolEnv } from '../../../src/core/workers/worker-environment.ts'

function aTemplate(fields: Partial<TemplateInput> = {}): TemplateInput {
  return {
    name: 'mine',
    image: 'image:1',
    diskGb: 1,
    volumeGb: 0,
    ...TEMPLATE_DEFAULTS,
    isServerless: true,
    ...fields,
  }
}

function sentences(problems: readonly FieldProblem[]): string[] {
  return problems.map(problem => problemSentence(problem))
}

const wrong: [fields: Partial<TemplateInput>, failure: string][] = [
  [{ name: ' ' }, 'name must not be empty'],
  [{ name: 'x'.repeat(192) }, 'name must have at most 191 characters'],
  [{ image: ' ' }, 'imageName must not be empty'],
  [{ diskGb: 0 }, 'containerDiskInGb must be an integer of at least 1'],
  [{ diskGb: 1.5 }, 'containerDiskInGb must be an integer of at least 1'],
  [{ volumeGb: -1, isServerless: false }, 'volumeInGb must be an integer of at least 0'],
  [{ volumeGb: 5 }, 'volumeInGb must be 0 for a serverless template'],
  [{ args: 'x'.repeat(65_537) }, 'dockerArgs must have at most 65536 characters'],
  [{ ports: ['80'] }, "ports: '80' is not of the form port/protocol"],
  [{ ports: ['80/http', '123456/tcp'] }, "ports: '123456/tcp' is not of the form port/protocol"],
  [{ ports: ['80/smtp'] }, "ports: '80/smtp' is not of the form port/protocol"],
  [{ portLabels: [{ port: '80/http', name: 'page' }] }, "portsConfig: '80/http' is not the number of a port"],
  [{ portLabels: [{ port: '80', name: '' }] }, 'portsConfig: the name of port 80 must have 1 to 191 characters'],
  [{ env: { 'A B': '' } }, "env: 'A B' is not a variable name"],
]

for (const [fields, failure] of wrong) {
  test(`a template with ${JSON.stringify(fields).slice(0, 60)} is refused`, () => {
    assert.deepEqual(templateProblems(aTemplate(fields)).map(graphqlSentence), [failure])
  })
}

test('all that is wrong with a template is found at once, and nothing with a right one', () => {
  assert.deepEqual(templateProblems(aTemplate()), [])
  assert.deepEqual(templateProblems(aTemplate({ isServerless: false, volumeGb: 20, ports: ['80/http', '22/tcp'] })), [])
  const fields = { name: '', image: '', diskGb: 0, volumeGb: 1, ports: ['x'], env: { '-': '' } }
  assert.equal(templateProblems(aTemplate(fields)).length, 6)
})

test('an environment has variable names, values that a process can hold, and an end', () => {
  assert.deepEqual(envProblems({ _A1: '', 'a.b-c': 'x\ny', PATH: 'ü' }), [])
  assert.deepEqual(sentences(envProblems({ A: 'x\0' })), ["env: the value of 'A' must not hold a null character"])
  assert.deepEqual(sentences(envProblems({ A: 'x'.repeat(65_537) })), [
    "env: the value of 'A' must have at most 65536 characters",
  ])
  const many = Object.fromEntries(Array.from({ length: 201 }, (_, index) => [`A${index}`, '']))
  assert.deepEqual(sentences(envProblems(many)), ['env must have at most 200 variables'])
})

test('a secret has a name that a reference can hold, and a value', () => {
  for (const name of ['a', 'HF_TOKEN', 'team/x.y-z', '0', 'x'.repeat(191)]) {
    assert.deepEqual(secretProblems({ name, value: 'v' }), [], name)
  }
  const form = 'name must have 1 to 191 letters, digits or _ . - /, and begin with a letter, a digit or _'
  for (const name of ['', '-a', 'a b', 'ä', 'x'.repeat(192), 'a}']) {
    assert.deepEqual(sentences(secretProblems({ name, value: 'v' })), [form], name)
  }
  assert.deepEqual(sentences(secretProblems({ name: 'RUNPOD_x' })), ['name must not start with RUNPOD'])
  const both = ['name must not start with RUNPOD', 'value must not be empty']
  assert.deepEqual(sentences(secretProblems({ name: 'runpodx', value: '' })), both)
})

test('a value has less than 16 MiB, in bytes, and a description less than 64 Ki characters', () => {
  const half = 8 * 1024 * 1024
  assert.deepEqual(secretProblems({ value: 'ä'.repeat(half - 1) }), [])
  assert.deepEqual(sentences(secretProblems({ value: 'ä'.repeat(half) })), ['value must be smaller than 16 MiB'])
  assert.deepEqual(secretProblems({ description: 'x'.repeat(65_535) }), [])
  assert.deepEqual(sentences(secretProblems({ description: 'x'.repeat(65_536) })), [
    'description must have at most 65535 characters',
  ])
  assert.deepEqual(secretProblems({ description: null }), [])
})

test('references to secrets are found wherever they stand, each name once', () => {
  const env = {
    A: '{{ RUNPOD_SECRET_one }}',
    B: 'x{{RUNPOD_SECRET_team/two.z-1}}y{{  RUNPOD_SECRET_one  }}',
    C: '{{ OTHER_one }}',
    D: '{ { RUNPOD_SECRET_no } }',
    E: '{{ RUNPOD_SECRET_ }}',
  }
  assert.deepEqual(secretNames(env), ['one', 'team/two.z-1'])
})

test('a reference becomes its value, which is taken as it is', () => {
  const values = new Map([
    ['one', '$& $1 {{ RUNPOD_SECRET_two }}'],
    ['two', 'II'],
  ])
  const env = { A: '<{{ RUNPOD_SECRET_one }}>', B: '{{RUNPOD_SECRET_two}}{{RUNPOD_SECRET_two}}', C: 'plain' }
  assert.deepEqual(resolveSecrets(env, values), { A: '<$& $1 {{ RUNPOD_SECRET_two }}>', B: 'IIII', C: 'plain' })
})

const rtx = { uuid: null, type: 'NVIDIA GeForce RTX 4090', memoryGb: 24 }
const placed = (gpuCount: number) => ({
  ...UNPLACED,
  gpus: Array.from({ length: gpuCount }, (_, index) => ({ ...rtx, index })),
})

const protocol = (gpuCount: number, placement: Placement = placed(gpuCount), env: Record<string, string> = {}) =>
  protocolEnv({
    env,
    endpointId: 'e1' as EndpointId,
    workerId: 'w1' as WorkerId,
    hostSuffix: '0a1b2c3d',
    token: 'rpw_t',
    placement,
    baseUrl: 'http://172.17.0.1:8081',
    volume: null,
  })

test('a worker gets the addresses of jobs and its id', () => {
  assert.deepEqual(protocol(0), {
    RUNPOD_POD_ID: 'w1',
    RUNPOD_POD_HOSTNAME: 'w1-0a1b2c3d',
    RUNPOD_ENDPOINT_ID: 'e1',
    RUNPOD_AI_API_KEY: 'rpw_t',
    RUNPOD_WEBHOOK_GET_JOB: 'http://172.17.0.1:8081/v2/e1/job-take/$ID?gpu=CPU',
    RUNPOD_WEBHOOK_POST_OUTPUT: 'http://172.17.0.1:8081/v2/e1/job-done/$RUNPOD_POD_ID/$ID?gpu=CPU',
    RUNYARD_WEBHOOK_POST_OUTPUTS: 'http://172.17.0.1:8081/v2/e1/job-done-batch/$RUNPOD_POD_ID?gpu=CPU',
    RUNPOD_WEBHOOK_POST_STREAM: 'http://172.17.0.1:8081/v2/e1/job-stream/$RUNPOD_POD_ID/$ID?gpu=CPU',
    RUNPOD_WEBHOOK_PING: 'http://172.17.0.1:8081/v2/e1/ping/$RUNPOD_POD_ID?gpu=CPU',
    RUNPOD_PING_INTERVAL: '10000',
    RUNPOD_LOG_LEVEL: 'INFO',
    RUNPOD_GPU_COUNT: '0',
    NO_PROXY: '172.17.0.1',
    RUNPOD_SKIP_GPU_CHECK: 'true',
  })
})

test('the log level of a worker is the one of its endpoint, where it has one', () => {
  assert.equal(protocol(0, UNPLACED, { OTHER: '1' }).RUNPOD_LOG_LEVEL, 'INFO')
  for (const name of ['RUNPOD_LOG_LEVEL', 'RUNPOD_DEBUG_LEVEL']) {
    assert.equal(protocol(0, UNPLACED, { [name]: 'DEBUG' }).RUNPOD_LOG_LEVEL, undefined)
  }
})

test('a worker gets its share of the machine', () => {
  const { RUNPOD_GPU_COUNT, RUNPOD_GPU_NAME, RUNPOD_SKIP_GPU_CHECK } = protocol(2)
  assert.deepEqual([RUNPOD_GPU_COUNT, RUNPOD_GPU_NAME], ['2', 'NVIDIA+GeForce+RTX+4090'])
  assert.equal(RUNPOD_SKIP_GPU_CHECK, undefined)
  const { RUNPOD_CPU_COUNT, RUNPOD_MEM_GB } = protocol(0, { ...UNPLACED, vcpus: 4, memoryMb: 8_192 })
  assert.deepEqual([RUNPOD_CPU_COUNT, RUNPOD_MEM_GB], ['4', '8'])
})

test('a worker gets the network volume of its endpoint', () => {
  const { RUNPOD_VOLUME_ID, RUNPOD_VOLUME_PATH } = protocolEnv({
    endpointId: 'e1' as EndpointId,
    workerId: 'w1' as WorkerId,
    hostSuffix: '0a1b2c3d',
    token: 't',
    placement: UNPLACED,
    env: {},
    baseUrl: 'http://172.17.0.1:8081',
    volume: { id: 'v1' as VolumeId, path: '/data/volumes/v1' },
  })
  assert.deepEqual([RUNPOD_VOLUME_ID, RUNPOD_VOLUME_PATH], ['v1', '/data/volumes/v1'])
})

test('each address of a worker has a query already, since workers append to it without looking', () => {
  const urls = Object.entries(protocol(2)).filter(([name]) => name.startsWith('RUNPOD_WEBHOOK_'))
  assert.equal(urls.length, 4)
  for (const [name, url] of urls) assert.ok(new URL(`${url}&job_in_progress=0`).searchParams.has('gpu', 'GPU'), name)
})

test('the address for jobs is one from which the addresses for batches and stops can be made', () => {
  const take = protocol(0).RUNPOD_WEBHOOK_GET_JOB!
  assert.ok(take.includes('/job-take/') && take.includes('$ID'))
  assert.match(take.replace('job-take', 'job-take-batch'), /\/v2\/e1\/job-take-batch\/\$ID\?/)
  assert.match(take.replace('/job-take/', '/job-stop/'), /\/v2\/e1\/job-stop\/\$ID\?/)
})
