import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  cataloged,
  compareVersions,
  gpuSummary,
  poolFromMemory,
  typesHere,
} from '../../../src/core/hardware/inventory.ts'
import { aGpu, aMachine } from '../../support/machines.ts'

const seen = (name: string, memoryGb = 24) => {
  const { type, pool } = cataloged(aGpu(0, name, { memoryGb }))
  return [type, pool]
}

test('a card of the catalogue has the type and the pool that the catalogue says', () => {
  assert.deepEqual(seen('NVIDIA GeForce RTX 4090'), ['NVIDIA GeForce RTX 4090', 'ADA_24'])
  assert.deepEqual(seen('NVIDIA H100 80GB HBM3', 80), ['NVIDIA H100 80GB HBM3', 'ADA_80_PRO'])
  assert.deepEqual(seen('NVIDIA H200', 140), ['NVIDIA H200', 'HOPPER_141'])
})

test('names of older drivers, odd blanks and letters do not matter', () => {
  assert.deepEqual(seen('GeForce RTX 3090'), ['NVIDIA GeForce RTX 3090', 'AMPERE_24'])
  assert.deepEqual(seen('NVIDIA  RTX A4500', 20), ['NVIDIA RTX A4500', 'AMPERE_16'])
  assert.deepEqual(seen('Tesla V100-SXM2-16GB', 16), ['Tesla V100-SXM2-16GB', 'AMPERE_16'])
  assert.deepEqual(seen('AMD Instinct MI300X', 192), ['AMD Instinct MI300X OAM', 'BLACKWELL_180'])
})

test('an unknown card is a type of its own name, in a pool that its memory is enough for', () => {
  assert.deepEqual(seen('NVIDIA A10', 22), ['NVIDIA A10', 'AMPERE_24'])
  assert.deepEqual(seen('NVIDIA A100-SXM4-40GB', 40), ['NVIDIA A100-SXM4-40GB', 'ADA_32_PRO'])
  assert.deepEqual(seen('NVIDIA A100-SXM4-80GB MIG 3g.40gb', 40), ['NVIDIA A100-SXM4-80GB MIG 3g.40gb', 'ADA_32_PRO'])
})

test('the pool for a memory is the first of the largest class that it reaches, give or take a tenth', () => {
  const pools = [4, 16, 20, 22, 24, 31, 48, 80, 94, 141, 179, 288].map(poolFromMemory)
  const expected = ['AMPERE_16', 'AMPERE_16', 'AMPERE_16', 'AMPERE_24', 'AMPERE_24', 'ADA_32_PRO', 'AMPERE_48']
  assert.deepEqual(pools, [...expected, 'AMPERE_80', 'BLACKWELL_96', 'HOPPER_141', 'BLACKWELL_180', 'BLACKWELL_180'])
})

test('a known type without a pool of its own gets one by its memory', () => {
  assert.deepEqual(seen('NVIDIA A30', 24), ['NVIDIA A30', 'AMPERE_24'])
  assert.deepEqual(seen('NVIDIA GeForce RTX 3070', 8), ['NVIDIA GeForce RTX 3070', 'AMPERE_16'])
})

test('the hardware of a machine is described in a few words', () => {
  const gpus = [aGpu(0, 'NVIDIA L4'), aGpu(1, 'NVIDIA L4'), aGpu(2, 'NVIDIA T400', { memoryGb: 4 })]
  assert.equal(gpuSummary(gpus), '2 x NVIDIA L4 (pool AMPERE_24), 1 x NVIDIA T400 (pool AMPERE_16)')
  assert.equal(gpuSummary([]), 'none')
  const types = typesHere(aMachine(gpus)).map(({ id, name, pool }) => [id, name, pool])
  assert.deepEqual(types, [
    ['NVIDIA L4', 'L4', 'AMPERE_24'],
    ['NVIDIA T400', 'T400', 'AMPERE_16'],
  ])
})

test('versions are compared as numbers', () => {
  assert.ok(compareVersions('12.10', '12.9') > 0)
  assert.ok(compareVersions('11.8', '12.0') < 0)
  assert.equal(compareVersions('12.4', '12.4'), 0)
})
