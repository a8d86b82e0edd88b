/** Real processes on cards of the driver library for tests: they are suspended before they are frozen. */
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { FakeGpus, noFakeGpus } from '../../support/fake-gpus.ts'
import { patient } from '../../support/patience.ts'
import { temporaryFolder } from '../support/cleanup.ts'
import { makeEndpoint, runJob, submit, whenFinal } from '../support/client.ts'
import { root, rootUrl, type Server, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

/** Takes memory of its card at its first job, and answers with its process and a checksum of that memory. */
const HANDLER = `import { start } from '${rootUrl}/packages/worker/index.js'
import { dlopen, getRawPointer } from 'node:ffi'
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
await start({ handler: async () => {
  if (at === null) take()
  bytes.fill(0)
  need(cuda.cuMemcpyDtoH_v2(base + 4096n, at, 4096n))
  return { pid: process.pid, sum: bytes.subarray(4096).reduce((total, byte) => (total * 33 + byte) >>> 0, 0) }
} })`

async function openCard(t: TestContext, settings: Readonly<Record<string, string | number>> = {}) {
  const gpus = new FakeGpus(t, { gbps: 100, cardMib: 2_048, ...settings })
  const folder = temporaryFolder()
  const image = join(folder, 'image')
  mkdirSync(image)
  writeFileSync(join(image, 'handler.mjs'), HANDLER)
  // The driver library keeps its state in a folder, which workers in sandboxes do not see.
  const trust = ['--worker-sandbox', 'off', '--accept-shared-host']
  const args = ['--process-root', folder, '--process-root', root, '--dwell', '1', ...trust]
  const options = { args, env: gpus.env as Record<string, string> }
  const { FAKE_CUDA_DIR = '', LD_LIBRARY_PATH = '' } = gpus.env
  const fields = {
    instanceIds: undefined,
    gpuIds: 'AMPERE_24',
    workersMax: 1,
    idleTimeout: 1,
    flashBootType: 'FLASHBOOT',
  }
  return {
    gpus,
    options,
    model: (server: Server) =>
      makeEndpoint(server, { folder: image, env: { FAKE_CUDA_DIR, LD_LIBRARY_PATH }, settings: fields }),
    usedMib: async () => ((await gpus.meter.measure(new Set())).cards[0]?.usedBytes ?? 0) / 2 ** 20,
  }
}

const suspends = (server: Server) => server.events('worker.suspended').length

describe('suspended workers', { skip: noFakeGpus, timeout: patient(180_000) }, () => {
  test('two models take turns on a card that has room for one, each with the same process and memory', async t => {
    const { options, model, usedMib } = await openCard(t)
    const server = await startServer(options)
    t.after(() => server.stop())
    const [first, second] = [await model(server), await model(server)]
    const begun = (await runJob(server, first, {})).output
    await until('the first to be suspended', () => suspends(server) === 1)
    assert.equal(await usedMib(), 0)
    const other = (await runJob(server, second, {})).output
    assert.notEqual(other.pid, begun.pid)
    assert.ok((await usedMib()) > 1_024)
    assert.deepEqual((await runJob(server, first, {})).output, begun)
    assert.deepEqual((await runJob(server, second, {})).output, other)
    assert.deepEqual(server.events('worker.exited'), [])
  })

  test('a server killed in the middle of a suspend and of a resume finds the worker and gives it its next job', async t => {
    // Each copy takes about a second.
    const { gpus, options, model, usedMib } = await openCard(t, { gbps: 1 })
    let server = await startServer(options)
    t.after(() => server.stop())
    const id = await model(server)
    const begun = (await runJob(server, id, {})).output
    const restart = async () => {
      await server.kill9()
      server = await startServer({ ...options, dataDir: server.dataDir, port: server.port })
    }
    const isNow = async (...states: string[]) => states.includes(await gpus.suspender().state(begun.pid))
    const next = async () => (await runJob(server, id, {})).output
    await until('its lock', () => isNow('locked', 'changing', 'checkpointed'))
    await restart()
    assert.deepEqual(await next(), begun, 'the suspend was finished or undone')
    await until('it to be suspended', () => suspends(server) === 1)
    const job = await submit(server, id, {})
    await until('its restore', () => isNow('locked', 'changing', 'running'))
    await restart()
    assert.deepEqual((await whenFinal(server, id, job)).output, begun)
    await until('it to be suspended again', async () => suspends(server) === 1 && (await usedMib()) === 0)
    assert.deepEqual(await next(), begun)
    assert.deepEqual(server.events('worker.exited'), [])
  })
})
