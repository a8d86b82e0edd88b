/** Real processes that share a card of the driver library for tests, with its `nvidia-smi`. */
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { CARD, FakeGpus, noFakeGpus } from '../../support/fake-gpus.ts'
import { temporaryFolder } from '../support/cleanup.ts'
import { ask, makeEndpoint, runJob, submit } from '../support/client.ts'
import { root, rootUrl, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

/** A worker that has its memory on the card before it takes jobs. */
const HANDLER = `import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { start } from '${rootUrl}/packages/worker/index.js'
const { MIB, RUNYARD_GPU_MEMORY_MB, RUNYARD_GPU_MEMORY_FRACTION } = process.env
const program = '${join(root, 'test/support/fake-cuda/fake-worker.ts')}'
const model = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', program, MIB], { stdio: ['pipe', 'pipe', 'inherit'] })
await once(model.stdout, 'data')
await start({ handler: async () => [RUNYARD_GPU_MEMORY_MB, RUNYARD_GPU_MEMORY_FRACTION] })`

test('workers with shares of 8, 8 and 6 GB run at once on a card of 24 GB, the fourth waits, and other programs count', {
  skip: noFakeGpus,
}, async t => {
  const gpus = new FakeGpus(t)
  const folder = temporaryFolder()
  const image = join(folder, 'image')
  mkdirSync(image)
  writeFileSync(join(image, 'handler.mjs'), HANDLER)
  const roots = ['--process-root', folder, '--process-root', root]
  const { PATH = '', LD_LIBRARY_PATH = '', FAKE_CUDA_DIR = '' } = gpus.env
  const env = { PATH, LD_LIBRARY_PATH, FAKE_CUDA_DIR }
  const server = await startServer({ args: [...roots, '--worker-sandbox', 'off', '--dwell', '600'], env })
  const sharing = (gb: number, mib: number) => {
    const gpu = { instanceIds: undefined, gpuIds: 'AMPERE_24', gpuMemoryGb: gb, workersMax: 1, idleTimeout: 3600 }
    return makeEndpoint(server, { folder: image, env: { ...env, MIB: String(mib) }, settings: gpu })
  }
  const wanted = await Promise.all([sharing(8, 7_000), sharing(8, 7_000), sharing(6, 5_000)])
  const outputs = await Promise.all(wanted.map(async id => (await runJob(server, id, {})).output))
  assert.deepEqual(outputs, [
    ['8192', '0.333'],
    ['8192', '0.333'],
    ['6144', '0.25'],
  ])
  const machine = async () => (await ask(server, '/v2/machine')).json
  await until(
    'the memory of all three',
    async () => (await machine()).gpus[0].memory?.freeMb === 24_576 - 19_000 - 3 * 512,
  )
  const { id, holders, memory } = (await machine()).gpus[0]
  assert.deepEqual([id, holders.length, memory.foreignMb], [CARD, 3, 0])

  const late = await sharing(4, 3_000)
  await submit(server, late, {})
  const reason = async (text: RegExp) =>
    (await machine()).waiting.some((one: { reason: string }) => text.test(one.reason))
  await until('the fourth to wait', () => reason(/has 4 GB left: 1\.5 GB of card 0 are left beside/))
  gpus.set({ foreign: '0,3000' })
  await until('the other program', () =>
    reason(/card 0 is full beside .* \(2\.9 GB of card 0 are used by other programs\)$/),
  )
})
