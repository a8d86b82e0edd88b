/** Real processes on a machine whose GPU is reported by a script in place of `nvidia-smi`. */
import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../support/cleanup.ts'
import { ask, healthOf, makeEndpoint, runJob, submit, whenFinal } from '../support/client.ts'
import { root, rootUrl, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const HANDLER = `import { start } from '${rootUrl}/packages/worker/index.js'
await start({ handler: async ({ input }) => {
  await new Promise(resolve => setTimeout(resolve, input.ms ?? 0))
  return [process.env.CUDA_VISIBLE_DEVICES, process.env.RUNPOD_GPU_COUNT, process.env.RUNPOD_GPU_NAME ?? null]
} })`

test('processes get the GPU one after the other, see no other, and the one that waits says for what', async () => {
  const folder = temporaryFolder()
  const image = join(folder, 'image')
  mkdirSync(image)
  writeFileSync(join(image, 'handler.mjs'), HANDLER)
  const tool = join(folder, 'nvidia-smi')
  writeFileSync(tool, "#!/bin/sh\ncase $1 in --query*) echo '0, GPU-one, NVIDIA L4, 23034, 550.54.15' ;; esac\n")
  chmodSync(tool, 0o755)
  const args = ['--process-root', folder, '--process-root', root, '--dwell', '1']
  const server = await startServer({ args, env: { PATH: `${folder}:${process.env.PATH}` } })
  const settings = { instanceIds: undefined, gpuIds: 'AMPERE_24', workersMax: 1, idleTimeout: 3600 }
  const first = await makeEndpoint(server, { folder: image, settings })
  assert.deepEqual((await runJob(server, first, {})).output, ['GPU-one', '1', 'NVIDIA+L4'])
  assert.equal(server.events('machine.changed')[0]?.gpus, '1 x NVIDIA L4 (pool AMPERE_24)')

  const long = await submit(server, first, { ms: 1_500 })
  const second = await makeEndpoint(server, { folder: image, settings })
  const waiting = await submit(server, second, {})
  await until('the second endpoint to wait', async () => (await healthOf(server, second)).workers.throttled === 1)
  const { json } = await ask(server, `/v2/${second}/explain/${waiting}`)
  assert.equal(json.cause, 'no_capacity')
  assert.match(json.summary, /no free GPU of pool AMPERE_24: 1 of 1 in use by endpoint wire-\d+/)
  const done = await whenFinal(server, second, waiting)
  assert.deepEqual([done.status, done.output], ['COMPLETED', ['GPU-one', '1', 'NVIDIA+L4']])
  assert.equal((await whenFinal(server, first, long)).status, 'COMPLETED')

  const cpu = await makeEndpoint(server, { folder: image })
  assert.deepEqual((await runJob(server, cpu, {})).output, ['', '0', null])
})
