import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openRig } from '../../support/rig.ts'

test('the ready workers are listed as the command line has them', async t => {
  const rig = await openRig(t)
  const { workers } = (await rig.ask('GET', '/ops/ready-workers')).json
  const vllm = workers.find(({ name }: { name: string }) => name === 'vllm')
  assert.match(vllm.image, /vllm/)
  assert.ok(vllm.gpuMemoryGb > 0)
})
