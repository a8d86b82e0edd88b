/**
 * Durations of the transitions of a job on the SQLite store, one after another, with inputs of 1 KB and of 1
 * MB: `bin/node bench/job-payloads.ts [folder on the disk to measure]`. To compare two versions, run it
 * alternately in a checkout of each.
 */
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Endpoint } from '../src/core/endpoints/endpoint.ts'
import type { Template } from '../src/core/endpoints/template.ts'
import type { EndpointId, JobId, OwnerId, WorkerId } from '../src/core/ids.ts'
import type { Job } from '../src/core/jobs/job.ts'
import type { Worker } from '../src/core/workers/worker.ts'
import type { Store } from '../src/ports/store/store.ts'
import { openSqliteStore } from '../src/store/engines/sqlite.ts'

const RUNS = [
  { characters: 1_000, jobs: 5_000 },
  { characters: 1_000_000, jobs: 100 },
]
const owner = 'o' as OwnerId
const endpointId = 'e' as EndpointId
const workerId = 'w' as WorkerId

async function fill(store: Store): Promise<void> {
  const common = { owner, name: 'n', createdAtMs: 0 }
  await store.templates.insert({ ...common, id: 't', listed: true, registry: null } as unknown as Template)
  const compute = { kind: 'cpu', configs: [{ flavor: 'cpu3g', vcpuCount: 2 }] }
  const endpoint = { ...common, id: endpointId, templateId: 't', version: 1, compute, networkVolumeIds: [] }
  await store.endpoints.insert({ ...endpoint, workersMin: 0, workersMax: 10 } as unknown as Endpoint)
  const worker = {
    id: workerId,
    owner,
    endpointId,
    version: 1,
    driver: 'mock',
    handle: null,
    baseUrl: '',
    createdAtMs: 0,
  }
  const rest = { capacity: 1, sdk: null, placement: null, placedAtMs: null, serves: null }
  await store.workers.insert({ ...worker, ...rest } as unknown as Worker, 'hash')
}

function payloadJob(position: number, input: string): Job {
  const texts = { input, policy: null, webhook: null, s3Config: null }
  const times = {
    executionTimeoutMs: 600_000,
    ttlMs: 86_400_000,
    retentionMs: 1_800_000,
    queuedAtMs: 1,
    expiresAtMs: 1e13,
  }
  const id = randomUUID() as string as JobId
  return { id, owner, endpointId, kind: 'run', lowPriority: false, position, ...texts, ...times } as Job
}

async function run(folder: string, characters: number, jobs: number): Promise<void> {
  const store = await openSqliteStore({ file: join(folder, `${characters}.sqlite`), host: 'inline' })
  await fill(store)
  const input = JSON.stringify({ prompt: 'x'.repeat(characters) })
  const tookMs = { insert: 0, claim: 0, progress: 0, finish: 0 }
  const timed = async <Result>(step: keyof typeof tookMs, work: Promise<Result>): Promise<Result> => {
    const start = performance.now()
    const result = await work
    tookMs[step] += performance.now() - start
    return result
  }
  for (let n = 0; n < jobs; n += 1) await timed('insert', store.jobs.insert(payloadJob(n, input)))
  for (let n = 0; n < jobs; n += 1) {
    const { jobs: claimed } = await timed('claim', store.jobs.claim({ endpointId, workerId, limit: 1, nowMs: 1 }))
    const jobId = claimed[0]!.id
    await timed('progress', store.jobs.setProgress(jobId, workerId, '"half"'))
    const outcome = { status: 'COMPLETED', output: '{"ok":true}', error: null, warning: null } as const
    await timed('finish', store.jobOutcomes.finish({ jobId, workerId, outcome, nowMs: 2 }))
  }
  await store.close()
  const steps = Object.entries(tookMs).map(([step, ms]) => `${step} ${(ms / jobs).toFixed(3)} ms`)
  console.log(`${jobs} jobs with inputs of ${characters} characters: ${steps.join(', ')}`)
}

const folder = mkdtempSync(join(process.argv[2] ?? tmpdir(), 'runyard-bench-'))
try {
  for (const { characters, jobs } of RUNS) await run(folder, characters, jobs)
} finally {
  rmSync(folder, { recursive: true })
}
