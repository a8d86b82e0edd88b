/** A server whose workers are real processes with memory on a card of the driver library for tests. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { FakeGpus } from '../../support/fake-gpus.ts'
import { temporaryFolder } from './cleanup.ts'
import { makeEndpoint } from './client.ts'
import { root, rootUrl, type Server } from './server.ts'

/**
 * Takes memory of its card at its first job and reads it in each step; the sum of a job covers what it read in all its
 * steps. It answers with its process, the steps and the sum. A job with the file `log` writes its process and its
 * steps there, and one with the file `until` ends after that file exists.
 */
const HANDLER = `import { existsSync, writeFileSync } from 'node:fs'
import { dlopen, getRawPointer } from 'node:ffi'
import { start } from '${rootUrl}/packages/worker/index.js'
const { functions: cuda } = dlopen('libcuda.so.1', {
  cuInit: { arguments: ['u32'], return: 'i32' },
  cuDevicePrimaryCtxRetain: { arguments: ['pointer', 'i32'], return: 'i32' },
  cuCtxSetCurrent: { arguments: ['u64'], return: 'i32' },
  cuMemAlloc_v2: { arguments: ['pointer', 'u64'], return: 'i32' },
  cuMemcpyHtoD_v2: { arguments: ['u64', 'pointer', 'u64'], return: 'i32' },
  cuMemcpyDtoH_v2: { arguments: ['pointer', 'u64', 'u64'], return: 'i32' },
})
const arena = new ArrayBuffer(8192)
const base = getRawPointer(arena)
const view = new DataView(arena)
const bytes = new Uint8Array(arena)
const need = result => { if (result !== 0) throw new Error('the driver answered ' + result) }
let at = null
function take() {
  need(cuda.cuInit(0))
  need(cuda.cuDevicePrimaryCtxRetain(base, 0))
  need(cuda.cuCtxSetCurrent(view.getBigUint64(0, true)))
  need(cuda.cuMemAlloc_v2(base, 1n << 30n))
  at = view.getBigUint64(0, true)
  for (let index = 0; index < 4096; index += 1) bytes[index] = (index * 31 + process.pid) & 255
  need(cuda.cuMemcpyHtoD_v2(at, base, 4096n))
}
await start({ handler: async ({ input: { log, until } }) => {
  if (at === null) take()
  let [steps, sum] = [0, 0]
  do {
    bytes.fill(0)
    need(cuda.cuMemcpyDtoH_v2(base + 4096n, at, 4096n))
    sum = bytes.subarray(4096).reduce((total, byte) => (total * 33 + byte) >>> 0, sum)
    steps += 1
    if (log) writeFileSync(log, JSON.stringify({ pid: process.pid, steps }))
    await new Promise(done => setTimeout(done, 10))
  } while (until && !existsSync(until))
  return { pid: process.pid, steps, sum }
} })`

/** The answer of a job whose process has kept its memory on the card. */
export function rightOutput(pid: number, steps: number) {
  let sum = 0
  for (let step = 0; step < steps; step += 1) {
    for (let index = 0; index < 4096; index += 1) sum = (sum * 33 + ((index * 31 + pid) & 255)) >>> 0
  }
  return { pid, steps, sum }
}

/** The files with which a test watches and ends a job. */
export function watchedJob(folder: string, name: string) {
  const input = { log: join(folder, `${name}.log`), until: join(folder, `${name}.end`) }
  return {
    input,
    /** Its process and the steps so far; null before the first one. */
    seen: () => {
      const text = existsSync(input.log) ? readFileSync(input.log, 'utf8') : ''
      // A read may come between the truncation and the write of the worker.
      return text.endsWith('}') ? (JSON.parse(text) as { readonly pid: number; readonly steps: number }) : null
    },
    end: () => writeFileSync(input.until, ''),
  }
}

/**
 * A machine with one card of 2 GiB, on which a worker has 1.5 GiB with its context.
 * @param settings lines of `machine.conf`, see fake-cuda/README.md
 */
export function openCardMachine(t: TestContext, settings: Readonly<Record<string, string | number>> = {}) {
  const gpus = new FakeGpus(t, { gbps: 100, cardMib: 2_048, ...settings })
  const folder = temporaryFolder()
  const image = join(folder, 'image')
  mkdirSync(image)
  writeFileSync(join(image, 'handler.mjs'), HANDLER)
  // The driver library keeps its state in a folder, which workers in sandboxes do not see.
  const trust = ['--worker-sandbox', 'off', '--accept-shared-host']
  const args = ['--process-root', folder, '--process-root', root, '--dwell', '1', ...trust]
  const { FAKE_CUDA_DIR = '', LD_LIBRARY_PATH = '' } = gpus.env
  const wholeCard = { instanceIds: undefined, gpuIds: 'AMPERE_24', workersMax: 1, idleTimeout: 1 }
  return {
    gpus,
    folder,
    /** Options of `startServer`. */
    options: { args, env: gpus.env as Record<string, string> },
    endpoint: (server: Server, fields: Readonly<Record<string, unknown>>) =>
      makeEndpoint(server, {
        folder: image,
        env: { FAKE_CUDA_DIR, LD_LIBRARY_PATH },
        settings: { ...wholeCard, ...fields },
      }),
    usedMib: async () => ((await gpus.meter.measure(new Set())).cards[0]?.usedBytes ?? 0) / 2 ** 20,
  }
}
