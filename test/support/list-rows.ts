/** A few rows for each list of the command line, as the server sends them, with names and ids of ordinary length. */

import { RESOURCE_COLUMNS } from '../../src/cli/terminal/resource-columns.ts'
import type { Column, TableRow } from '../../src/cli/terminal/table.ts'
import { LIMIT_COLUMNS, TIMES_COLUMNS, tokenColumns, usageColumns } from '../../src/cli/terminal/usage-columns.ts'
import { WORKER_COLUMNS } from '../../src/cli/terminal/worker-table.ts'
import { READY_WORKERS } from '../../src/core/endpoints/ready-workers.ts'

/** The time at which the lists are printed. */
export const LISTED_AT = Date.parse('2026-11-20T12:00:00Z')

/** A list: the command that prints it, its columns and its rows. */
export interface ListSample {
  readonly command: string
  readonly columns: readonly Column[]
  readonly rows: readonly TableRow[]
}

const ago = (minutes: number) => new Date(LISTED_AT - minutes * 60_000 - 500).toISOString()
const agoMs = (minutes: number) => LISTED_AT - minutes * 60_000 - 500
const workers = { min: 0, max: 3 }
const vllm = 'runpod/worker-v1-vllm:v2.7.0'
const JOBS = ['01a20b59-7d70-78ec-8ec1-29e8ccdcf732-u1', '01a20b57-1c04-7ab1-9d3e-5f6c1b2a7e90-u1']
const time = (p50: number | null, p95: number | null) => ({ count: 1, p50, p90: p95, p95, p99: p95 })

/** Every list. */
export const LIST_SAMPLES: readonly ListSample[] = [
  {
    command: 'runyard endpoints list',
    columns: RESOURCE_COLUMNS.endpoints,
    rows: [
      {
        id: 'b1bxxzc34cuxc8',
        name: 'llama-3',
        type: 'QUEUE',
        workers,
        gpu: { pools: ['ADA_24'], count: 1 },
        image: vllm,
      },
      {
        id: 'whisper',
        name: 'whisper',
        type: 'QUEUE',
        workers,
        gpu: { pools: ['AMPERE_80'], count: 2 },
        image: 'dir:/srv/whisper',
      },
      {
        id: 'q93xh304r2j5bs',
        name: 'page',
        type: 'LOAD_BALANCER',
        workers: { min: 1, max: 5 },
        cpu: [{ id: 'cpu3g', vcpuCount: 2 }],
        image: 'registry.example.com/team/page:14',
      },
    ],
  },
  {
    command: 'runyard workers list',
    columns: WORKER_COLUMNS,
    rows: [
      {
        id: 'tk41tg96tzv7m3',
        endpointId: 'b1bxxzc34cuxc8',
        status: 'RUNNING',
        phase: 'running',
        phaseSince: ago(3),
        gpuCount: 1,
        gpuTypeId: 'NVIDIA GeForce RTX 4090',
        jobsHeld: 2,
        reason: null,
      },
      {
        id: 'dzh3dqabzjtl89',
        endpointId: 'whisper',
        status: 'INITIALIZING',
        phase: 'pulling',
        pullPercent: 41.3,
        phaseSince: ago(1),
        gpuCount: 2,
        gpuTypeId: 'NVIDIA A100 80GB PCIe',
        jobsHeld: 0,
        reason: null,
      },
    ],
  },
  {
    command: 'runyard jobs list llama-3',
    columns: RESOURCE_COLUMNS.jobs,
    rows: [
      {
        id: JOBS[0],
        status: 'IN_PROGRESS',
        createdAt: agoMs(1),
        startedAt: agoMs(0.9),
        delayTime: 157,
        executionTime: 48_200,
      },
      {
        id: JOBS[1],
        status: 'COMPLETED',
        createdAt: agoMs(64),
        startedAt: agoMs(63),
        delayTime: 12_400,
        executionTime: 3_723_000,
      },
    ],
  },
  {
    command: 'runyard jobs list',
    columns: RESOURCE_COLUMNS.jobsOfAll,
    rows: [{ id: `sync-${JOBS[0]}`, endpointId: 'b1bxxzc34cuxc8', status: 'IN_PROGRESS', createdAt: agoMs(1) }],
  },
  {
    command: 'runyard batches list',
    columns: RESOURCE_COLUMNS.batchesOfAll,
    rows: [
      {
        id: '01a20b59-9e10-7c22-8b4f-0d1e2f3a4b5c',
        endpointId: 'b1bxxzc34cuxc8',
        status: 'FINALIZED',
        createdAt: agoMs(90),
        requestTotal: 5_000,
        requestCompleted: 1_204,
      },
    ],
  },
  {
    command: 'runyard jobs webhooks <job>',
    columns: RESOURCE_COLUMNS.deliveries,
    rows: [
      {
        id: '86f71701-c191-449c-ab7f-dc4a2a4921d4',
        state: 'DELIVERED',
        jobStatus: 'COMPLETED',
        createdAt: ago(5),
        tries: [{ status: 200 }],
      },
      {
        id: '0c0f1f9e-6b70-4b58-8f0e-3a7c1f2d9b11',
        state: 'PENDING',
        jobStatus: 'FAILED',
        createdAt: ago(1),
        tries: [{ error: 'ECONNREFUSED' }],
      },
    ],
  },
  {
    command: 'runyard batches list llama-3',
    columns: RESOURCE_COLUMNS.batches,
    rows: [
      {
        id: '01a20b59-9e10-7c22-8b4f-0d1e2f3a4b5c',
        status: 'FINALIZED',
        createdAt: agoMs(90),
        requestTotal: 5_000,
        requestCompleted: 1_204,
        requestFailed: 3,
      },
    ],
  },
  {
    command: 'runyard endpoints releases llama-3',
    columns: RESOURCE_COLUMNS.releases,
    rows: [
      { version: 3, createdAt: ago(61), workerCount: 1, diff: [{ field: 'image' }, { field: 'env.MODEL_NAME' }] },
      { version: 2, createdAt: ago(4_000), workerCount: 0, diff: [] },
    ],
  },
  {
    command: 'runyard endpoints keys',
    columns: RESOURCE_COLUMNS.endpointKeys,
    rows: [
      {
        id: 'acfa26ca-3b51-4283-8522-2fa8b7a39152',
        endpoint: 'b1bxxzc34cuxc8',
        hint: 'rpa_yQkg',
        disabled: false,
        createdAt: ago(4_000),
        lastUsedAt: null,
      },
    ],
  },
  {
    command: 'runyard templates list',
    columns: RESOURCE_COLUMNS.templates,
    rows: [{ id: 'cbwsmuz3921e05', name: 'vllm-llama', serverless: true, image: vllm }],
  },
  {
    command: 'runyard secrets list',
    columns: RESOURCE_COLUMNS.secrets,
    rows: [{ id: 'uwvml3d1nkycqi', name: 'hugging-face', createdAt: ago(50), description: 'to download models' }],
  },
  {
    command: 'runyard keys list',
    columns: RESOURCE_COLUMNS.keys,
    rows: [
      {
        id: 'acfa26ca-3b51-4283-8522-2fa8b7a39152',
        name: 'main',
        hint: 'rpa_yQkg',
        scope: { type: 'all' },
        disabled: false,
        expiresAt: null,
        lastUsedAt: ago(2),
      },
      {
        id: '0b0d4a52-7a7e-4e3c-9df2-1f0a5d6b7c88',
        name: 'page',
        hint: 'rpa_1xVd',
        scope: { type: 'restricted' },
        disabled: false,
        expiresAt: new Date(LISTED_AT + 900_500).toISOString(),
        lastUsedAt: null,
      },
    ],
  },
  {
    command: 'runyard accounts list',
    columns: RESOURCE_COLUMNS.accounts,
    rows: [
      { id: 'owner', name: 'operator', deleteRunningEndpoints: false },
      { id: 'ow4kbpev9apmw8', name: 'research', deleteRunningEndpoints: false },
    ],
  },
  {
    command: 'runyard volumes list',
    columns: RESOURCE_COLUMNS.volumes,
    rows: [{ id: 'm0q93xh304', name: 'models', size: 100, dataCenter: 'EU-RO-1' }],
  },
  {
    command: 'runyard global-volumes list',
    columns: RESOURCE_COLUMNS['global-volumes'],
    rows: [{ id: 'h7w2kd0a1s', name: 'datasets', size: 4096 }],
  },
  {
    command: 'runyard registries list',
    columns: RESOURCE_COLUMNS.registries,
    rows: [{ id: 'ow4kbpev9apmw8', name: 'team-registry' }],
  },
  {
    command: 'runyard models list',
    columns: RESOURCE_COLUMNS.models,
    rows: [
      {
        name: 'Qwen/Qwen2.5-7B-Instruct',
        commit: 'a09a35458c702b33eeacc393d103063234e8bc28',
        refs: ['main'],
        bytes: 15_242_842_112,
        workers: 2,
        usedAt: ago(3),
      },
      {
        name: 'openai/whisper-large-v3',
        commit: '06f233fe06e710322aca913c1bc4249a0d71fce1',
        refs: ['main'],
        bytes: 9_258_106_880,
        workers: 0,
        usedAt: ago(2_000),
      },
    ],
  },
  {
    command: 'runyard catalog gpus',
    columns: RESOURCE_COLUMNS.gpus,
    rows: [
      { id: 'NVIDIA GeForce RTX 4090', name: 'RTX 4090', pool: 'ADA_24', memory: 24, maxCount: { secure: 2 } },
      { id: 'NVIDIA H100 80GB HBM3', name: 'H100 SXM', pool: 'HOPPER_80', memory: 80, maxCount: { secure: 0 } },
    ],
  },
  {
    command: 'runyard catalog cpus',
    columns: RESOURCE_COLUMNS.cpus,
    rows: [{ id: 'cpu3g', name: 'General Purpose', ramGbPerVcpu: 4, vcpu: { min: 2, max: 32 } }],
  },
  {
    command: 'runyard catalog datacenters',
    columns: RESOURCE_COLUMNS.datacenters,
    rows: [{ id: 'EU-RO-1', region: 'EUROPE' }],
  },
  {
    command: 'runyard deploy --list',
    columns: RESOURCE_COLUMNS.readyWorkers,
    rows: Object.entries(READY_WORKERS).map(([name, worker]) => ({ name, ...worker })),
  },
  {
    command: 'runyard usage',
    columns: usageColumns('day', new Map([['b1bxxzc34cuxc8', 'llama-3']])),
    rows: [
      {
        startTime: '2026-11-20T00:00:00Z',
        serverlessId: 'b1bxxzc34cuxc8',
        totalAmount: 1.234,
        usage: {
          jobs: { completed: 1_204, failed: 3 },
          runningMs: 3_100_000,
          idleMs: 240_000,
          startingMs: 21_000,
          tokens: { promptTokens: 1_804_551, completionTokens: 390_112 },
        },
      },
      {
        startTime: '2026-11-20T00:00:00Z',
        serverlessId: 'k2m9x7q4z1v8p3',
        totalAmount: 0,
        usage: { jobs: { completed: 9, failed: 0 }, runningMs: 41_000, idleMs: 0, startingMs: 3_000, tokens: null },
      },
    ],
  },
  {
    command: 'runyard usage --bucket hour',
    columns: usageColumns('hour', new Map([['b1bxxzc34cuxc8', 'llama-3']])),
    rows: [
      {
        startTime: '2026-11-20T11:00:00Z',
        serverlessId: 'b1bxxzc34cuxc8',
        totalAmount: 1.234,
        usage: { jobs: { completed: 1_204, failed: 3 }, runningMs: 3_100_000, idleMs: 240_000, startingMs: 21_000 },
      },
    ],
  },
  {
    command: 'runyard usage --tokens',
    columns: tokenColumns('day', {
      endpoints: new Map([['b1bxxzc34cuxc8', 'llama-3']]),
      keys: new Map([['7d2c1a4e', 'team-chat']]),
    }),
    rows: [
      {
        startTime: '2026-11-20T00:00:00Z',
        serverlessId: 'b1bxxzc34cuxc8',
        keyId: '7d2c1a4e',
        model: 'llama-3.1-8b',
        requests: 1_204,
        promptTokens: 1_804_551,
        cachedTokens: 403_200,
        completionTokens: 390_112,
      },
    ],
  },
  {
    command: 'runyard usage llama-3 --times --bucket hour',
    columns: TIMES_COLUMNS,
    rows: [
      {
        at: '2026-11-20T11:00:00.000Z',
        requests: { completed: 1_204, failed: 2, timedOut: 1, expired: 0 },
        delayMs: time(157, 4_310),
        executionMs: time(1_240, 8_900),
        coldStartMs: time(21_000, 21_000),
        workers: { running: { max: 3 } },
        gpus: { busyPercent: { average: 71.4, max: 100 }, memoryPercent: { average: 82.5, max: 88 } },
      },
      {
        at: '2026-11-20T12:00:00.000Z',
        requests: { completed: 0, failed: 0, timedOut: 0, expired: 0 },
        delayMs: time(null, null),
        executionMs: time(null, null),
        coldStartMs: time(null, null),
        workers: { running: { max: 0 } },
        gpus: { busyPercent: null, memoryPercent: null },
      },
    ],
  },
  {
    command: 'runyard usage --limits',
    columns: LIMIT_COLUMNS,
    rows: [
      { name: 'endpoints', used: 12, limit: 1_000 },
      { name: 'queuedJobs', used: 431, limit: 100_000 },
      { name: 'gpus', used: 2, limit: 'none' },
    ],
  },
]
