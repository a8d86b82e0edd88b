/** The catalogue of ready workers. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { READY_WORKERS, readReadyWorkers } from '../../../src/core/endpoints/ready-workers.ts'

test('the catalogue of the package follows its format', () => {
  assert.deepEqual(readReadyWorkers(READY_WORKERS), { workers: READY_WORKERS })
  for (const [name, { image, env }] of Object.entries(READY_WORKERS)) {
    assert.match(image, /^[a-z0-9./-]+:[\w.-]+$/, `${name}: an image without a version changes by itself`)
    assert.equal(new Set(env.map(variable => variable.name)).size, env.length, name)
  }
})

test('people ask for the workers that are used most', () => {
  for (const name of ['vllm', 'comfyui', 'faster-whisper', 'infinity', 'sglang', 'automatic1111'])
    assert.ok(Object.hasOwn(READY_WORKERS, name), name)
})

test('everything wrong with a catalogue is said at once', () => {
  const { vllm } = READY_WORKERS
  const reading = readReadyWorkers({
    Vllm: vllm,
    half: { ...vllm, gpuMemoryGb: 0.5, image: '', extra: 1 },
    env: { ...vllm, env: [{ name: '1A', about: 'x' }] },
    none: null,
  })
  assert.deepEqual('mistakes' in reading ? reading.mistakes : [], [
    "'Vllm' must begin with a small letter, and have small letters, digits and - only",
    'half: "extra" is not known',
    'half: "image" must be the reference of an image',
    'half: "gpuMemoryGb" must be a whole number of GB, 0 for none',
    'env: "env" must be a list of {"name", "about", "default"?}',
    'none: it must be an object',
  ])
  assert.deepEqual(readReadyWorkers([]), { mistakes: ['it must be an object of workers by their names'] })
})
