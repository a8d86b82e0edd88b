import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isLiveWorker, runsApp, runtimeImage } from '../../../src/core/endpoints/runtime-image.ts'

test('an image of the SDK names the kind of its workers and their Python', () => {
  assert.deepEqual(runtimeImage('runpod/queue:py3.11-latest'), { kind: 'queue', python: '3.11' })
  assert.deepEqual(runtimeImage('docker.io/runpod/api-gpu:py3.14-1.2.0'), { kind: 'api', python: '3.14' })
  assert.deepEqual(runtimeImage('runpod/task-gpu:py3.10-main'), { kind: 'task', python: '3.10' })
})

test('other images, and versions without an image of the SDK, are none', () => {
  const others = ['runpod/worker-vllm:py3.11-latest', 'me/queue:py3.11-latest', 'runpod/queue:py3.9-latest']
  for (const image of [...others, 'runpod/queue:latest', 'runpod/queue:py3.11-', 'dir:queue', '']) {
    assert.equal(runtimeImage(image), null, image)
  }
})

test('a worker of an app is known by its image or by its variables', () => {
  assert.ok(runsApp('runpod/queue:py3.11-latest', {}))
  assert.ok(runsApp('dir:own', { FLASH_RESOURCE_NAME: 'add' }))
  assert.ok(runsApp('me/image', { RUNPOD_DEV_APP: 'shop' }))
  assert.ok(!runsApp('me/image', { RUNPOD_API_KEY: 'x' }))
})

test('a worker of an app without the name of a resource runs the source of its calls, as the runtime decides it', () => {
  const isLive = (env: Record<string, string>) => isLiveWorker('runpod/queue:py3.11-latest', env)
  assert.deepEqual(
    [{}, { FLASH_RESOURCE_NAME: '' }, { FLASH_RESOURCE_NAME: 'add' }, { RUNPOD_RESOURCE_NAME: 'add' }].map(isLive),
    [true, true, false, false],
  )
})
