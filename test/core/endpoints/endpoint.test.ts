import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { graphqlSentence, restSentence } from '../../../src/api/field-names.ts'
import {
  type Compute,
  ENDPOINT_DEFAULTS,
  type Endpoint,
  endpointProblems,
  formatGpuIds,
  idleTimeoutMs,
  parseGpuIds,
  SCALER_DEFAULTS,
  tidied,
  workersMustSee,
} from '../../../src/core/endpoints/endpoint.ts'
import type { FieldProblem } from '../../../src/core/field-problem.ts'
import { cpuMemoryGb, cpuProblems, gpuProblems, locationProblems } from '../../../src/core/hardware/catalog.ts'
import { CPU_FLAVORS, GPU_POOLS, LOCATION_CODES } from '../../../src/core/hardware/catalog-data.ts'
import type { VolumeId } from '../../../src/core/ids.ts'
import { anEndpoint } from '../../support/snapshots.ts'

/** Problems as GraphQL shows them. */
function sentences(problems: readonly FieldProblem[]): string[] {
  return problems.map(graphqlSentence)
}

const GPU: Extract<Compute, { kind: 'gpu' }> = {
  kind: 'gpu',
  pools: ['AMPERE_16'],
  excludedTypes: [],
  count: 1,
  allowedCudaVersions: [],
  minCudaVersion: null,
}
const requests = (requestCount: number) => ({ scaler: { type: 'REQUEST_COUNT', requestCount } }) as const
const delay = (queueDelayS: number) => ({ scaler: { type: 'QUEUE_DELAY', queueDelayS } }) as const
const POOLS = GPU_POOLS.map(({ id }) => id).join(', ')

const wrong: [fields: Partial<Endpoint>, failures: string[]][] = [
  [{ name: '  ' }, ['name must not be empty']],
  [{ name: 'x'.repeat(192) }, ['name must have at most 191 characters']],
  [{ workersMin: -1 }, ['workersMin must be an integer from 0 to 1000']],
  [{ workersMin: 0.5 }, ['workersMin must be an integer from 0 to 1000']],
  [{ workersMax: 1_001 }, ['workersMax must be an integer from 0 to 1000']],
  [{ workersMin: 2, workersMax: 1 }, ['workersMin (2) must not exceed workersMax (1)']],
  [{ idleTimeoutS: 0 }, ['idleTimeout must be an integer from 1 to 3600 seconds']],
  [{ idleTimeoutS: 3_601 }, ['idleTimeout must be an integer from 1 to 3600 seconds']],
  [{ idleTimeoutS: 1.5 }, ['idleTimeout must be an integer from 1 to 3600 seconds']],
  [{ executionTimeoutMs: 4_999 }, ['executionTimeoutMs must be an integer from 5000 to 604800000 milliseconds']],
  [{ executionTimeoutMs: 604_800_001 }, ['executionTimeoutMs must be an integer from 5000 to 604800000 milliseconds']],
  [delay(0.49), ['scalerValue must be at least 0.5 seconds for QUEUE_DELAY']],
  [delay(86_401), ['scalerValue must be at most 86400 seconds for QUEUE_DELAY']],
  [delay(Number.NaN), ['scalerValue must be at least 0.5 seconds for QUEUE_DELAY']],
  [requests(0), ['scalerValue must be an integer of at least 1 for REQUEST_COUNT']],
  [requests(1.5), ['scalerValue must be an integer of at least 1 for REQUEST_COUNT']],
  [{ type: 'LOAD_BALANCER' }, ['scalerType must be REQUEST_COUNT for a load-balancing endpoint']],
  [{ compute: { kind: 'cpu', configs: [] } }, ['instanceIds must name at least one CPU configuration']],
  [{ compute: { ...GPU, count: 0 } }, ['gpuCount must be an integer from 1 to 64']],
  [{ compute: { ...GPU, pools: [] } }, ['gpuIds must name at least one GPU pool']],
  [{ compute: { ...GPU, pools: ['X'] } }, [`gpuIds: 'X' is not a GPU pool; the pools are ${POOLS}`]],
  [
    { compute: { ...GPU, allowedCudaVersions: ['12', 'x'] } },
    ['12', 'x'].map(version => `allowedCudaVersions: CUDA version '${version}' is not of the form major.minor`),
  ],
  [{ env: { '1A': 'x' } }, ["env: '1A' is not a variable name"]],
]

for (const [fields, failures] of wrong) {
  test(`an endpoint with ${JSON.stringify(fields).slice(0, 80)} is refused`, () => {
    assert.deepEqual(sentences(endpointProblems(anEndpoint(fields))), failures)
  })
}

test('all that is wrong with an endpoint is found at once', () => {
  const fields = {
    name: '',
    workersMin: 9,
    workersMax: 1,
    idleTimeoutS: 0,
    executionTimeoutMs: 1,
    ...delay(0),
    env: { '': '' },
    compute: { ...GPU, pools: ['X'], count: 0 },
    locations: ['Atlantis'],
  }
  assert.equal(endpointProblems(anEndpoint(fields)).length, 9)
})

const right: Partial<Endpoint>[] = [
  ...[{}, delay(0.5), requests(1), { type: 'LOAD_BALANCER' as const, ...requests(4) }, { compute: GPU }],
  ...[{ workersMin: 0, workersMax: 0 }, { workersMin: 1_000, workersMax: 1_000 }, { idleTimeoutS: 3_600 }],
  ...[{ executionTimeoutMs: 5_000 }, { executionTimeoutMs: 604_800_000 }, { locations: ['US', 'EU-RO-1'] }],
  { compute: { ...GPU, allowedCudaVersions: ['12.4', '12.8'], count: 64 } },
  { compute: { ...GPU, minCudaVersion: '11.8' }, modelReferences: ['a/b', 'o.r-g/m_1:v1/x'], compliance: ['GDPR'] },
]

test('an endpoint takes either a list of CUDA versions or a lowest one', () => {
  const both = anEndpoint({ compute: { ...GPU, allowedCudaVersions: ['12.4'], minCudaVersion: '12.1' } })
  const sentence = 'allowedCudaVersions excludes minCudaVersion; one of them must be empty'
  assert.deepEqual(sentences(endpointProblems(both)), [sentence])
})

test('what is kept for clients has a form, too', () => {
  const fields = {
    modelReferences: ['a', 'a/b:'],
    compliance: ['X'],
    workersPfbTarget: -1,
    networkVolumeIds: ['v', 'v'] as VolumeId[],
  }
  const failures = sentences(endpointProblems(anEndpoint(fields)))
  assert.equal(failures.length, 5)
  assert.equal(failures[0], "networkVolumeIds: 'v' is given twice")
  const forms = 'is not of the form owner/name or owner/name:revision, as it is or behind https://huggingface.co/'
  assert.equal(failures[1], `modelReferences: 'a' ${forms}`)
  assert.match(failures[3]!, /^compliance: 'X' is not known; known are GDPR, /)
})

test('a model is named as on its host, or with the address of it', () => {
  const failing = (reference: string) => endpointProblems(anEndpoint({ modelReferences: [reference] })).length > 0
  const host = 'https://huggingface.co/'
  const named = [
    'a/b',
    'a/b:main',
    'Qwen/Qwen2.5-0.5B-Instruct:317b7eb96312eda0c431d1dab1af958a308cb35e',
    'a/b:refs/pr/1',
  ]
  for (const reference of named) assert.deepEqual([failing(reference), failing(host + reference)], [false, false])
  const wrong = [
    'http://huggingface.co/a/b',
    'https://hf.co/a/b',
    'https://evil.example/a/b',
    `${host}a`,
    `${host}a/b/c`,
  ]
  const odd = [`${host}a/b?x`, `${host}a/b#x`, `${host}a/b:`, `${host}${host}a/b`, `${host}a/b main`, `x${host}a/b`, '']
  for (const reference of [...wrong, ...odd]) assert.ok(failing(reference), reference)
})

test('problems name fields of the model, and each surface shows them with its own names', () => {
  const fields = anEndpoint({ workersMin: 2, workersMax: 1, idleTimeoutS: 0, ...delay(0) })
  const problems = endpointProblems(fields)
  assert.deepEqual(problems, [
    { field: 'workersMin', other: 'workersMax', value: '2', problem: 'must not exceed {other} (1)' },
    { field: 'idleTimeoutS', problem: 'must be an integer from 1 to 3600 seconds' },
    { field: 'scaler.queueDelayS', problem: 'must be at least 0.5 seconds for QUEUE_DELAY' },
  ])
  assert.deepEqual(
    problems.map(problem => restSentence(problem)),
    [
      '$.workers.min: 2 must not exceed workers.max (1)',
      '$.workers.idleTimeout: must be an integer from 1 to 3600 seconds',
      '$.scaling.queueDelay: must be at least 0.5 seconds for QUEUE_DELAY',
    ],
  )
})

test('blanks around the names of types are no part of them', () => {
  const { compute } = tidied({ domain: null, compute: { ...GPU, pools: [' ADA_24'], excludedTypes: [' NVIDIA L4 '] } })
  assert.deepEqual(compute, { ...GPU, pools: ['ADA_24'], excludedTypes: ['NVIDIA L4'] })
})

test('what lies within the bounds is saved', () => {
  for (const fields of right) assert.deepEqual(endpointProblems(anEndpoint(fields)), [], JSON.stringify(fields))
})

test('an endpoint without settings gets the documented defaults', () => {
  const { workersMin, workersMax, idleTimeoutS, executionTimeoutMs, flashboot } = ENDPOINT_DEFAULTS
  assert.deepEqual([workersMin, workersMax, idleTimeoutS, executionTimeoutMs, flashboot], [0, 3, 10, 600_000, 'OFF'])
  assert.deepEqual(SCALER_DEFAULTS, { QUEUE: delay(4).scaler, LOAD_BALANCER: requests(4).scaler })
})

test('a queue that scales on requestCount has an idle time of 5 seconds, all others their own', () => {
  assert.equal(idleTimeoutMs(anEndpoint({ idleTimeoutS: 30 })), 30_000)
  assert.equal(idleTimeoutMs(anEndpoint({ idleTimeoutS: 30, ...requests(1) })), 5_000)
  assert.equal(idleTimeoutMs(anEndpoint({ idleTimeoutS: 30, type: 'LOAD_BALANCER', ...requests(1) })), 30_000)
})

const seen: [field: string, change: Partial<Endpoint>, must: boolean][] = [
  ['type', { type: 'LOAD_BALANCER' }, true],
  ['compute', { compute: GPU }, true],
  ['locations', { locations: ['US'] }, true],
  ['volumes', { networkVolumeIds: ['v' as VolumeId] }, true],
  ['environment', { env: { A: '1' } }, true],
  ['flashboot', { flashboot: 'FLASHBOOT' }, true],
  ['name', { name: 'other' }, false],
  ['range', { workersMin: 1, workersMax: 9 }, false],
  ['idle timeout', { idleTimeoutS: 99 }, false],
  ['scaler', requests(9), false],
  ['execution timeout', { executionTimeoutMs: 9_000 }, false],
  ['nothing', {}, false],
]

for (const [field, change, must] of seen) {
  test(`a change of ${field} ${must ? 'replaces' : 'keeps'} the workers`, () => {
    assert.equal(workersMustSee(anEndpoint(), anEndpoint(change)), must)
  })
}

test('the order of the variables is no change', () => {
  const before = anEndpoint({ env: { A: '1', B: '2' } })
  assert.ok(!workersMustSee(before, anEndpoint({ env: { B: '2', A: '1' } })))
  assert.ok(workersMustSee(before, anEndpoint({ env: { A: '2', B: '1' } })))
})

test('a list of pools and excluded types is read as people write it', () => {
  assert.deepEqual(parseGpuIds(' AMPERE_16 ,, -NVIDIA RTX A4000,ADA_24,- NVIDIA L4 '), {
    pools: ['AMPERE_16', 'ADA_24'],
    excludedTypes: ['NVIDIA RTX A4000', 'NVIDIA L4'],
  })
  assert.deepEqual(parseGpuIds(''), { pools: [], excludedTypes: [] })
  assert.equal(formatGpuIds({ kind: 'cpu', configs: [] }), null)
})

test('every choice of pools and excluded types survives being written and read', () => {
  const types = GPU_POOLS.flatMap(({ gpuTypes }) => gpuTypes)
  const pools = fc.subarray(GPU_POOLS.map(({ id }) => id))
  fc.assert(
    fc.property(pools, fc.subarray(types), (pools, excludedTypes) => {
      assert.deepEqual(parseGpuIds(formatGpuIds({ ...GPU, pools, excludedTypes })!), { pools, excludedTypes })
    }),
  )
})

test('only types of the selected pools can be taken out of them', () => {
  assert.deepEqual(gpuProblems(['AMPERE_16', 'ADA_24'], ['NVIDIA RTX A4500', 'NVIDIA GeForce RTX 4090']), [])
  assert.deepEqual(sentences(gpuProblems(['ADA_24'], ['NVIDIA RTX A4500', 'x'])), [
    "gpuIds: 'NVIDIA RTX A4500' is not a GPU type of the selected pools",
    "gpuIds: 'x' is not a GPU type of the selected pools",
  ])
  assert.equal(gpuProblems(['X', 'Y'], ['z']).length, 3)
  assert.deepEqual(gpuProblems(['ADA_24'], ['x'], null), [], 'types of the machine are not known')
})

test('a type is taken out once, and without a hyphen', () => {
  assert.deepEqual(sentences(gpuProblems(['AMPERE_24'], ['NVIDIA L4', 'NVIDIA L4', '-NVIDIA L4'])), [
    "gpuIds: 'NVIDIA L4' is given twice",
    "gpuIds: '-NVIDIA L4' must not start with a hyphen",
  ])
})

test('every GPU type and pool of the documentation is there, each once', () => {
  const documented = ['AMPERE_16', 'AMPERE_24', 'ADA_24', 'AMPERE_48', 'ADA_48_PRO', 'AMPERE_80', 'ADA_80_PRO']
  const ids = GPU_POOLS.map(({ id }) => id)
  for (const pool of documented) assert.ok(ids.includes(pool), pool)
  const all = [...ids, ...GPU_POOLS.flatMap(({ gpuTypes }) => gpuTypes), ...CPU_FLAVORS.map(({ id }) => id)]
  assert.equal(new Set(all).size, all.length)
  for (const { gpuTypes } of GPU_POOLS) {
    for (const type of gpuTypes) assert.ok(!type.includes(',') && !type.startsWith('-') && type === type.trim(), type)
  }
})

test('locations are countries and data centers, and an unknown one is refused with the list', () => {
  assert.deepEqual([...LOCATION_CODES], ['CZ', 'FR', 'GB', 'NO', 'RO', 'US'])
  assert.deepEqual(locationProblems([...LOCATION_CODES, 'EU-RO-1']), [])
  const [failure, ...more] = sentences(locationProblems(['us', 'US']))
  assert.match(failure!, /^locations: 'us' is not a location; the locations are CZ, FR, GB, NO, RO, US, AP-JP-1, /)
  assert.deepEqual(more, [])
})

test('a CPU configuration is a flavor and a power of two of vCPUs', () => {
  for (const count of [1, 2, 4, 8, 16, 32]) assert.deepEqual(cpuProblems('cpu3c', count), [])
  for (const count of [0, 3, 6, 64, 0.5, -2, Number.NaN]) {
    assert.deepEqual(sentences(cpuProblems('cpu3c', count)), [
      `instanceIds: vcpuCount ${count} is not a power of two from 1 to 32`,
    ])
  }
  assert.deepEqual(sentences(cpuProblems('cpu9', 2)), [
    "instanceIds: 'cpu9' is not a CPU flavor; the flavors are cpu3c, cpu3g, cpu5c, cpu5g",
  ])
})

test('memory follows from the flavor, 4 GB a vCPU where the catalogue does not say', () => {
  const sizes = [
    ['cpu3c', 4, 8],
    ['cpu3g', 4, 16],
    ['cpu5c', 2, 4],
    ['cpu5g', 2, 8],
    ['else', 1, 4],
  ] as const
  for (const [flavor, vcpus, gb] of sizes) assert.equal(cpuMemoryGb(flavor, vcpus), gb, flavor)
})
