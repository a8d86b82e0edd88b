import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gpuChoice } from '../../../src/core/hardware/gpu-choice.ts'
import { typesHere } from '../../../src/core/hardware/inventory.ts'
import { aGpu, aMachine } from '../../support/machines.ts'

const here = typesHere(aMachine([aGpu(0), aGpu(1, 'NVIDIA GeForce RTX 3080', { memoryGb: 10 })]))

const cases = [
  ['ADA_24', [], ['ADA_24'], []],
  ['ada_24', [], ['ADA_24'], []],
  ['RTX 4090', [], ['ADA_24'], []],
  ['4090', [], ['ADA_24'], []],
  ['NVIDIA GeForce RTX 4090', [], ['ADA_24'], []],
  ['rtx-3090', [], ['AMPERE_24'], ['NVIDIA L4', 'NVIDIA RTX A5000']],
  ['L4, RTX 3090', [], ['AMPERE_24'], ['NVIDIA RTX A5000']],
  ['AMPERE_24,RTX 3090', [], ['AMPERE_24'], []],
  ['A100', [], ['AMPERE_80'], []],
  ['any', here, ['ADA_24', 'AMPERE_16'], []],
] as const

for (const [words, types, pools, excludedTypes] of cases)
  test(`'${words}' is pool ${pools.join(' and ')}${excludedTypes.length === 0 ? '' : ' without some'}`, () => {
    assert.deepEqual(gpuChoice(words, types), { pools, excludedTypes })
  })

test('a type without a pool is available if the machine has it', () => {
  assert.match(String(gpuChoice('RTX 3080', [])), /^names 'RTX 3080', which is not a GPU for endpoints; did you mean /)
  const choice = gpuChoice('RTX 3080', here)
  assert.ok(typeof choice === 'object')
  assert.deepEqual(choice.pools, ['AMPERE_16'])
  assert.ok(!choice.excludedTypes.includes('NVIDIA GeForce RTX 3080'))
})

test('what is no GPU is said with what may be meant', () => {
  assert.match(String(gpuChoice('RTX 4O90', [])), /did you mean RTX 4090\?$/)
  assert.match(String(gpuChoice('potato', [])), /; known are .*RTX 4090.*ADA_24/)
  assert.match(String(gpuChoice('', [])), /^names ''/)
  assert.equal(gpuChoice('any', []), "is 'any', and this machine has no GPU")
})
