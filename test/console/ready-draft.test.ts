import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { Endpoint } from '../../console/client/api-types.d.ts'
import { createBody, NEW_DRAFT } from '../../console/pages/endpoint-form/draft.ts'
import { copiedDraft, type ReadyWorker, readyDraft } from '../../console/pages/endpoints/ready-draft.ts'

const file = new URL('../../src/core/endpoints/ready-workers.json', import.meta.url)
const catalog = JSON.parse(readFileSync(file, 'utf8')) as Record<string, Omit<ReadyWorker, 'name'>>
const vllm: ReadyWorker = { name: 'vllm', ...catalog.vllm! }
const gpu = (id: string, pool: string, memory: number, count = 1) => ({ id, pool, memory, maxCount: { secure: count } })

test('a ready worker fills the form with what it needs, on GPUs of this machine with enough memory', () => {
  const gpus = [gpu('large', 'A', 24), gpu('small', 'A', 8), gpu('elsewhere', 'B', 80, 0)]
  const body = createBody({ ...NEW_DRAFT, name: 'llm', ...readyDraft(vllm, gpus) })
  assert.equal(body.image, vllm.image)
  assert.equal(body.timeout, vllm.timeoutMs)
  assert.equal(body.disk, vllm.diskGb)
  assert.deepEqual(body.gpu, { pools: ['A'], excludedTypes: ['small'] })
  assert.equal((body.env as Record<string, string>).MAX_MODEL_LEN, '8192')
  assert.equal('HF_TOKEN' in (body.env as object), false, 'a variable without a default is left out')
  assert.equal(body.cpu, undefined)
})

test('on a machine without such a GPU the pools are left for a person to choose', () => {
  assert.deepEqual(readyDraft(vllm, [gpu('small', 'A', 8)]).pools, [])
})

test('a copy of an endpoint has another name, no domain of another, and references of secrets only', () => {
  const endpoint = {
    id: 'abc',
    name: 'images',
    type: 'LOAD_BALANCER',
    image: 'org/images:1',
    env: { TOKEN: '{{ RUNPOD_SECRET_token }}' },
    cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
    workers: { min: 1, max: 2, idleTimeout: 7 },
    scaling: { type: 'REQUEST_COUNT', requestCount: 9 },
    domain: 'images.example.org',
    timeout: 60_000,
  } as unknown as Endpoint
  const body = createBody(copiedDraft(endpoint))
  assert.equal(body.name, 'images copy')
  assert.equal(body.domain, undefined)
  assert.deepEqual(body.env, endpoint.env)
  assert.deepEqual(body.workers, { min: 1, max: 2, idleTimeout: 7 })
  assert.equal(body.timeout, 60_000)
  assert.equal('id' in body, false)
})
