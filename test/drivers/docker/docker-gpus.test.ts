/** GPUs of containers: the requests to the engine, since the machines of the tests have no GPUs. */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { EndpointId, WorkerId } from '../../../src/core/ids.ts'
import { type AssignedGpu, UNPLACED } from '../../../src/core/workers/placement.ts'
import { amdDevices } from '../../../src/drivers/base/amd-devices.ts'
import type { GpuContext } from '../../../src/drivers/docker/container-gpus.ts'
import { type ContainerContext, containerSpec } from '../../../src/drivers/docker/container-spec.ts'
import { noDocker, openDockerMachine } from '../../support/docker.ts'
import { patient } from '../../support/patience.ts'
import { PLAIN_WORKER } from '../../support/worker-spec.ts'

const amd = (index: number, uuid: string | null = null): AssignedGpu => ({
  index,
  uuid,
  type: 'AMD Instinct MI300X OAM',
  memoryGb: 192,
})
const nvidia = (index: number, uuid: string | null = null): AssignedGpu => ({
  index,
  uuid,
  type: 'NVIDIA L4',
  memoryGb: 24,
})

/** Request that creates a container with these GPUs. */
function made(gpus: readonly AssignedGpu[], changes: Partial<GpuContext> = {}, env: Record<string, string> = {}) {
  const devices: GpuContext['amdDevices'] = list => ({
    paths: ['/dev/kfd', ...list.map(({ index }) => `/dev/dri/renderD${128 + index}`)],
    groups: [44, 992],
  })
  const context: ContainerContext = {
    image: 'image',
    installation: 'i',
    cpus: 8,
    memoryBytes: 2 ** 36,
    boundsDisk: false,
    connection: { name: 'net', extraHosts: [], serving: 'direct' },
    gpus: { podman: null, amdDevices: devices, ...changes },
  }
  const body = containerSpec(
    {
      ...PLAIN_WORKER,
      workerId: 'w' as WorkerId,
      endpointId: 'e' as EndpointId,
      image: 'image',
      args: '',
      env,
      placement: { ...UNPLACED, gpus },
    },
    context,
  ) as { Env: string[]; HostConfig: Record<string, unknown> }
  const variables = Object.fromEntries(body.Env.map(line => line.split('=') as [string, string]))
  return { host: body.HostConfig, variables }
}

test('a container with GPUs of AMD has their devices and their groups, and counts them from 0', () => {
  const { host, variables } = made([amd(2), amd(3)], {}, { HIP_VISIBLE_DEVICES: '0', NVIDIA_VISIBLE_DEVICES: 'all' })
  const device = (path: string) => ({ PathOnHost: path, PathInContainer: path, CgroupPermissions: 'rw' })
  assert.deepEqual(host.Devices, ['/dev/kfd', '/dev/dri/renderD130', '/dev/dri/renderD131'].map(device))
  assert.deepEqual(host.GroupAdd, ['44', '992'])
  assert.deepEqual(host.Ulimits, [{ Name: 'memlock', Soft: -1, Hard: -1 }])
  assert.equal(host.DeviceRequests, undefined)
  assert.equal(host.ShmSize, 2 ** 35)
  const { HIP_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES, CUDA_VISIBLE_DEVICES, NVIDIA_VISIBLE_DEVICES } = variables
  assert.deepEqual([HIP_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES, CUDA_VISIBLE_DEVICES], ['0,1', '0,1', '0,1'])
  assert.equal(NVIDIA_VISIBLE_DEVICES, 'void')
})

test('a container with GPUs of NVIDIA asks for them by their ids, and has no devices of AMD', () => {
  const { host, variables } = made([nvidia(0, 'GPU-1'), nvidia(3)])
  assert.deepEqual(host.DeviceRequests, [
    { Driver: '', Count: 0, DeviceIDs: ['GPU-1', '3'], Capabilities: [['gpu']], Options: {} },
  ])
  assert.deepEqual([host.Devices, host.GroupAdd], [undefined, undefined])
  assert.deepEqual([variables.NVIDIA_VISIBLE_DEVICES, variables.HIP_VISIBLE_DEVICES], ['GPU-1,3', undefined])
})

test('Podman is asked for them by the names of CDI, and one that would leave them out is not asked', () => {
  const requests = (podman: string) => made([nvidia(0, 'GPU-1')], { podman }).host.DeviceRequests
  const names = [{ Driver: 'cdi', Count: 0, DeviceIDs: ['nvidia.com/gpu=GPU-1'], Capabilities: [['gpu']], Options: {} }]
  for (const version of ['5.4.0', '5.10.1', '6.0.0-rc1']) assert.deepEqual(requests(version), names, version)
  for (const version of ['4.3.1', '5.3.2', '']) {
    assert.throws(() => requests(version), { code: 'invalid', message: /gives containers no GPUs of NVIDIA .*5\.4/ })
  }
  assert.doesNotThrow(() => made([amd(0)], { podman: '4.3.1' }))
})

test('a container without GPUs sees no GPU, whatever its variables', () => {
  const { host, variables } = made([], {}, { NVIDIA_VISIBLE_DEVICES: 'all' })
  assert.deepEqual([host.Devices, host.DeviceRequests, host.Ulimits, host.GroupAdd], Array(4).fill(undefined))
  assert.equal(variables.NVIDIA_VISIBLE_DEVICES, 'void')
})

/** A file system with the kernel's list of GPUs: processors have a node, too, and cards of others come between. */
function rootWith(context: TestContext, nodes: readonly string[], devices: readonly string[]): string {
  const root = mkdtempSync(join(tmpdir(), 'runyard-amd-'))
  context.after(() => rmSync(root, { recursive: true }))
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  nodes.forEach((text, id) => void write(`sys/class/kfd/kfd/topology/nodes/${id}/properties`, text))
  for (const device of devices) write(device, '')
  return root
}

const CPU = 'cpu_cores_count 64\nsimd_count 0\ndrm_render_minor 0\nunique_id 0\n'
const card = (minor: number, id: string) =>
  `cpu_cores_count 0\nsimd_count 304\ndrm_render_minor ${minor}\nunique_id ${id}\n`

test('a GPU of AMD is found by its id, else by its place in the list of the kernel', context => {
  const id = 0x6a1b2c3d4e5f6071n
  const nodes = [CPU, CPU, card(129, String(id)), card(137, '7'), card(131, '0')]
  const root = rootWith(context, nodes, ['dev/kfd', 'dev/dri/renderD129', 'dev/dri/renderD137', 'dev/dri/renderD131'])
  const pathsOf = (...gpus: AssignedGpu[]) => amdDevices(gpus, root).paths
  assert.deepEqual(pathsOf(amd(0), amd(1), amd(2)), [
    ...['/dev/kfd', '/dev/dri/renderD129', '/dev/dri/renderD137', '/dev/dri/renderD131'],
  ])
  assert.deepEqual(pathsOf(amd(2, `GPU-${id.toString(16)}`)), ['/dev/kfd', '/dev/dri/renderD129'])
  assert.deepEqual(pathsOf(amd(1, 'ff000000-0000-1000-8000-000000000000')), ['/dev/kfd', '/dev/dri/renderD137'])
  assert.throws(() => pathsOf(amd(3)), { code: 'invalid', message: /^GPU 3 is not among the 3 that the kernel lists/ })
  assert.deepEqual(amdDevices([amd(0)], root).groups, [statSync(join(root, 'dev/kfd')).gid])
})

test('without the list of the kernel the usual numbers are taken, and the engine says whether they are there', context => {
  const root = rootWith(context, [CPU], [])
  assert.deepEqual(amdDevices([amd(1)], root), { paths: ['/dev/kfd', '/dev/dri/renderD129'], groups: [] })
  assert.deepEqual(amdDevices([amd(0)], join(root, 'nowhere')).paths, ['/dev/kfd', '/dev/dri/renderD128'])
})

test('a GPU of AMD whose device the engine does not have is the reason why a worker does not start', {
  skip: noDocker !== false ? noDocker : statSync('/dev/kfd', { throwIfNoEntry: false }) ? 'there is one here' : false,
  timeout: patient(60_000),
}, async () => {
  const machine = await openDockerMachine()
  try {
    const spec = machine.spec(['true'], { placement: { ...UNPLACED, gpus: [amd(0)] } })
    await assert.rejects(machine.driver().start(spec), {
      code: 'invalid',
      message: /has no device for the GPU; load its driver amdgpu there/,
    })
    assert.deepEqual(await machine.own(), [])
  } finally {
    await machine.close()
  }
})
