/** Device files that a worker in a cage gets for its GPUs. */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { gpuDevices } from '../../../src/drivers/cage/gpu-devices.ts'

const root = mkdtempSync(join(tmpdir(), 'runyard-'))
after(() => rmSync(root, { recursive: true, force: true }))

const write = (path: string, text: string) => {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), text)
}
const uuid = (digit: string) => `GPU-${'00000000-0000-0000-0000-00000000000'}${digit}`
const card = (bus: string, id: string, minor: number) =>
  write(
    `proc/driver/nvidia/gpus/${bus}/information`,
    `Model: \t\t NVIDIA L4\nIRQ:   \t\t 42\nGPU UUID: \t ${id}\nBus Type: \t PCIe\nDevice Minor: \t ${minor}\nGPU Firmware: \t 550\n`,
  )
card('0000:01:00.0', uuid('a'), 1)
card('0000:21:00.0', uuid('b'), 0)
card('0000:41:00.0', 'GPU-????????-????-????-????-????????????', 2)

const own = (gpus: Parameters<typeof gpuDevices>[0], at = root) =>
  gpuDevices(gpus, at).filter(path => /nvidia\d|cap/.test(path))
const l4 = { type: 'NVIDIA L4', memoryGb: 24 }

test('a card is found by its id, since the driver counts otherwise than its tool', () => {
  assert.deepEqual(own([{ ...l4, index: 0, uuid: uuid('a') }]), ['/dev/nvidia1'])
  const both = [1, 0].map(index => ({ ...l4, index, uuid: uuid(index === 0 ? 'a' : 'b') }))
  assert.deepEqual(own(both), ['/dev/nvidia0', '/dev/nvidia1'])
})

test('a card whose id the driver does not say is found by its place on the bus', () => {
  assert.deepEqual(own([{ ...l4, index: 2, uuid: uuid('c') }]), ['/dev/nvidia2'])
  assert.deepEqual(own([{ ...l4, index: 0, uuid: null }]), ['/dev/nvidia1'])
})

test('where the driver says nothing, the card has the number that the tool gives', () => {
  assert.deepEqual(own([{ ...l4, index: 3, uuid: uuid('d') }], join(root, 'nowhere')), ['/dev/nvidia3'])
})

test('a part of a card comes with the files of the parts of that card, and not with the one that splits cards', () => {
  const mig = 'proc/driver/nvidia/capabilities/gpu0/mig'
  write('proc/driver/nvidia/capabilities/mig/config', 'DeviceFileMinor: 1\nDeviceFileMode: 256\nDeviceFileModify: 1\n')
  write(`${mig}/gi1/access`, 'DeviceFileMinor: 12\nDeviceFileMode: 292\nDeviceFileModify: 1\n')
  write(`${mig}/gi1/ci0/access`, 'DeviceFileMinor: 13\nDeviceFileMode: 292\nDeviceFileModify: 1\n')
  write('proc/driver/nvidia/capabilities/gpu1/mig/gi1/access', 'DeviceFileMinor: 147\n')
  const part = { type: 'NVIDIA A100', memoryGb: 10, index: 1, uuid: 'MIG-5c2f4b52-4f2d-5b6e-8c0a-000000000000' }
  assert.deepEqual(own([part]), ['/dev/nvidia0', '/dev/nvidia-caps/nvidia-cap12', '/dev/nvidia-caps/nvidia-cap13'])
})

test('a worker without GPUs has no device of one, and one with a card of AMD has that card alone', () => {
  assert.deepEqual(gpuDevices([], root), [])
  const amd = { index: 1, uuid: null, type: 'AMD Instinct MI300X OAM', memoryGb: 192 }
  assert.deepEqual(gpuDevices([amd], root), ['/dev/kfd', '/dev/dri/renderD129'])
})
