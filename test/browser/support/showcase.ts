/** A server as somebody has it who runs a few models: what the pictures of the documentation show. */
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import type { EndpointId } from '../../../src/core/ids.ts'
import {
  countGpu,
  countQueue,
  countTime,
  countWorkers,
  emptyBucket,
} from '../../../src/core/observing/metric-bucket.ts'
import type { MetricCount } from '../../../src/ports/store/metric-store.ts'
import { openSqliteStore } from '../../../src/store/engines/sqlite.ts'
import { temporaryFolder } from '../../wire/support/cleanup.ts'
import { ask, submit, whenFinal } from '../../wire/support/client.ts'
import { root, type Server, startServer } from '../../wire/support/server.ts'
import { until } from '../../wire/support/until.ts'

/** A server with endpoints, jobs that ended well and badly, jobs that wait, output and metrics. */
export interface Showcase {
  readonly server: Server
  /** A job of whisper-large that failed with a traceback. */
  readonly failedJob: string
}

const HANDLERS: Readonly<Record<string, string>> = {
  'whisper-large': `
console.log('loading openai/whisper-large-v3 in float16')
console.log('ready: 1550 M parameters, 3.1 GB of GPU memory')
start({
  async handler({ input: { audio } }) {
    console.log('reading ' + audio)
    if (audio.startsWith('live/')) await sleep(3_600_000)
    await sleep(90)
    if (audio.endsWith('.flac')) throw decodeError(audio)
    console.log('language en with probability 0.98')
    console.log('transcribed 214 s of audio in 0.09 s')
    return { language: 'en', seconds: 214, text: 'And so the long way home began with a map that nobody had drawn.' }
  },
})
function decodeError(audio) {
  console.error('decoder: frame 1204 of ' + audio + ' ends after 318 of 4608 bytes')
  const error = new Error('cannot decode ' + audio + ': it ends within frame 1204')
  error.name = 'DecodeError'
  error.stack = error.name + ': ' + error.message + '\\n    at decodeFrame (audio/flac.js:118:13)\\n    at decode (audio/flac.js:64:20)\\n    at handler (handler.mjs:9:44)'
  return error
}
`,
  'sdxl-turbo': `
console.log('loading stabilityai/sdxl-turbo')
start({ async handler({ input }) { await sleep(input.steps * 20); return { image: 'outputs/lighthouse.png', seed: 41 } } })
`,
  'llama-8b': `
if (process.env.QUANTIZATION === 'awq') {
  console.error('ModelError: llama-8b-awq needs 4-bit kernels, which are not installed')
  process.exit(1)
}
start({ async handler() { return { text: 'Lighthouses are bright.' } } })
`,
  'bge-embeddings': `
start({ async handler() { return { dimensions: 1024 } } })
`,
}

const IDS = { whisper: 'whisperlarge', sdxl: 'sdxlturbo', llama: 'llama8b', bge: 'bgeembeddings' } as const

/** A machine with three cards, and their use. */
const NVIDIA_SMI = `#!/bin/sh
case $1 in
  --query-gpu=index,utilization*) printf '0, 83, 9120, 46068\\n1, 64, 17300, 46068\\n2, 0, 480, 46068\\n' ;;
  --query*) printf '0, GPU-a, NVIDIA L40S, 46068, 570.86.15\\n1, GPU-b, NVIDIA L40S, 46068, 570.86.15\\n2, GPU-c, NVIDIA L40S, 46068, 570.86.15\\n' ;;
esac
`

/** Starts it. Takes some seconds, since a worker has to crash three times. */
export async function startShowcase(): Promise<Showcase> {
  const folder = temporaryFolder()
  const dataDir = join(folder, 'data')
  writeFileSync(join(folder, 'nvidia-smi'), NVIDIA_SMI)
  chmodSync(join(folder, 'nvidia-smi'), 0o755)
  const workers = Object.entries(HANDLERS).flatMap(([name, handler]) => [
    '--worker',
    workerFolder(folder, name, handler),
  ])
  const options = {
    dataDir,
    args: [...workers, '--docker', 'off', '--process-root', folder],
    env: { PATH: `${folder}${delimiter}${process.env.PATH}` },
  }
  const first = await startServer(options)
  const failedJob = await runJobs(first)
  // Its workers live on, and are those of the next one.
  await first.kill9()
  await addHistory(join(dataDir, 'runyard.sqlite'))
  const server = await startServer(options)
  await makeTrouble(server)
  return { server, failedJob }
}

function workerFolder(parent: string, name: string, handler: string): string {
  const folder = join(parent, name)
  mkdirSync(join(folder, 'node_modules/@runyard'), { recursive: true })
  symlinkSync(join(root, 'packages/worker'), join(folder, 'node_modules/@runyard/worker'))
  const imports = `import { setTimeout as sleep } from 'node:timers/promises'\nimport { start } from '@runyard/worker'\n`
  writeFileSync(join(folder, 'handler.mjs'), imports + handler)
  return folder
}

/** Jobs that end. Gives the one that failed. */
async function runJobs(server: Server): Promise<string> {
  for (const id of [IDS.whisper, IDS.sdxl]) await change(server, id, { workers: { max: 1, idleTimeout: 3600 } })
  await change(server, IDS.llama, { workers: { idleTimeout: 1 } })
  const ended = async (id: string, input: object) => {
    const job = await submit(server, id, input)
    await whenFinal(server, id, job)
    return job
  }
  const failed = await ended(IDS.whisper, { audio: 'calls/1.flac', language: 'en' })
  for (let at = 2; at <= 6; at++) await ended(IDS.whisper, { audio: `calls/${at}.wav`, language: 'en' })
  for (let at = 0; at < 3; at++) await ended(IDS.sdxl, { prompt: 'a lighthouse at dusk', steps: 2 })
  await ended(IDS.llama, { prompt: 'Tell me about lighthouses' })
  await until('llama-8b to have no worker', async () => (await overviewRow(server, IDS.llama)).workers.total === 0)
  return failed
}

/** Metrics of the last two hours: a day's work has gone before the pictures. */
async function addHistory(file: string): Promise<void> {
  const store = await openSqliteStore({ file, host: 'inline' })
  const nowMs = Math.floor(Date.now() / 60_000) * 60_000
  const counts: MetricCount[] = []
  for (let minutes = 1; minutes <= 120; minutes++) {
    const wave = 1 + Math.sin(minutes / 9) + Math.sin(minutes / 4) / 3
    const of = (id: string, scale: number) =>
      counts.push({
        endpointId: id as EndpointId,
        minuteMs: nowMs - minutes * 60_000,
        bucket: minuteBucket(wave * scale, minutes),
      })
    of(IDS.whisper, 14)
    of(IDS.sdxl, 6)
    of(IDS.bge, 30)
  }
  for (let at = 0; at < counts.length; at += 100) await store.metrics.add(counts.slice(at, at + 100))
  await store.close()
}

function minuteBucket(load: number, minutes: number) {
  const bucket = emptyBucket()
  bucket.results.completed = Math.max(1, Math.round(load))
  bucket.results.failed = minutes % 17 < 2 ? 2 : 0
  for (let at = 0; at < bucket.results.completed; at++) {
    countTime(bucket, 'delay', 40 + at * load * 6)
    countTime(bucket, 'execution', 700 + ((at * 37) % 11) * 90 + load * 12)
  }
  if (minutes % 23 === 0) countTime(bucket, 'coldStart', 8_200 + minutes * 25)
  const running = Math.min(3, Math.ceil(load / 12))
  for (let at = 0; at < 4; at++)
    countWorkers(bucket, { running, idle: 3 - running, starting: minutes % 23 === 0 ? 1 : 0, frozen: 0 })
  countQueue(bucket, { waiting: Math.round(Math.max(0, load - 18) / 2), inProgress: running })
  countGpu(bucket, { busy: Math.min(97, 20 + load * 2), memory: 19 + running * 9 })
  return bucket
}

/**
 * A release that crashes, so that the one before it goes on; an endpoint that may have no worker,
 * and its jobs; jobs that run.
 */
async function makeTrouble(server: Server): Promise<void> {
  await submit(server, IDS.whisper, { audio: 'live/harbour.wav', language: 'en' })
  await submit(server, IDS.sdxl, { prompt: 'a harbour', steps: 100_000 })
  await change(server, IDS.bge, { workers: { max: 0 } })
  for (let at = 0; at < 5; at++) await submit(server, IDS.bge, { text: 'lighthouse' })
  await change(server, IDS.llama, { env: { QUANTIZATION: 'awq' } })
  await submit(server, IDS.llama, { prompt: 'Tell me about harbours' })
  await until(
    'the rollout to stop, and the release before it to do its job',
    async () => {
      const { why, jobs, workers } = await overviewRow(server, IDS.llama)
      return why?.cause === 'rollout_stopped' && jobs.inQueue === 0 && workers.total === 0
    },
    60_000,
  )
}

async function overviewRow(server: Server, id: string) {
  const { json } = await ask(server, '/v2/overview')
  return json.endpoints.find((row: { id: string }) => row.id === id)
}

async function change(server: Server, id: string, body: object): Promise<void> {
  const { status, text } = await ask(server, `/v2/serverless/${id}`, { method: 'PATCH', body })
  if (status !== 200) throw new Error(`${id} was not changed: ${text}`)
}
