/** The catalogue through GraphQL: everything that is known, and of it what this machine really has. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { aGpu, aMachine } from '../../support/machines.ts'
import { openRig } from '../../support/rig.ts'

const RTX = 'NVIDIA GeForce RTX 4090'

async function machineWith(t: Parameters<typeof openRig>[0], gpus: number) {
  const rig = await openRig(t)
  rig.machine = aMachine(Array.from({ length: gpus }, (_, index) => aGpu(index, RTX)))
  return rig
}

test('GPU types are found by one id, by several, or all; an unknown one is an empty list', async t => {
  const rig = await machineWith(t, 0)
  const ids = async (input: string) =>
    (await rig.graphql(`{ gpuTypes${input} { id } }`)).gpuTypes.map(({ id }: { id: string }) => id)
  assert.ok((await ids('')).length > 40)
  assert.deepEqual(await ids(`(input: { id: "${RTX}" })`), [RTX])
  assert.deepEqual(await ids(`(input: { ids: ["${RTX}", "NVIDIA L4"] })`), [RTX, 'NVIDIA L4'])
  assert.deepEqual(await ids('(input: { id: "nosuch" })'), [])
})

for (const [gpus, gpuCount, stockStatus] of [
  [0, 1, null],
  [1, 1, 'Low'],
  [1, 2, null],
  [3, 1, 'Medium'],
  [8, 1, 'High'],
  [8, 4, 'Medium'],
] as const) {
  test(`of ${gpus} GPUs the stock for workers with ${gpuCount} is ${stockStatus}`, async t => {
    const rig = await machineWith(t, gpus)
    const query = `query ($id: String, $price: GpuLowestPriceInput) { gpuTypes(input: { id: $id }) {
      maxGpuCount lowestPrice(input: $price) {
        stockStatus totalCount uninterruptablePrice minimumBidPrice minMemory minVcpu } } }`
    const price = { gpuCount, secureCloud: true, includeAiApi: true, allowedCudaVersions: [], compliance: [] }
    const [gpu] = (await rig.graphql(query, { id: RTX, price })).gpuTypes
    // Tools take a type without minMemory for an unavailable one.
    const machine = stockStatus === null ? { minMemory: null, minVcpu: null } : { minMemory: 32, minVcpu: 8 }
    assert.deepEqual(gpu, {
      maxGpuCount: gpus,
      lowestPrice: { stockStatus, totalCount: gpus, uninterruptablePrice: 0, minimumBidPrice: null, ...machine },
    })
  })
}

test('what a GPU type has is shown in the fields of the public schema, and null where this machine does not know it', async t => {
  const rig = await machineWith(t, 2)
  const price = async (input: string) => {
    const fields = `clusterPrice rentalPercentage rentedCount minDisk minDownload minUpload countryCode supportPublicIp compliance maxGpuCount
      maxUnreservedGpuCount availableGpuCounts gpuTypeCudaVersions { cudaVersion } gpuTypeDatacenters { dataCenterId availability }`
    const query = `{ gpuTypes(input: { id: "${RTX}" }) { lowestPrice(input: ${input}) { ${fields} } } }`
    const { gpuTypeDatacenters: places, ...rest } = (await rig.graphql(query)).gpuTypes[0].lowestPrice
    return { rest, places: new Set(places.map((place: { availability: string }) => place.availability)) }
  }
  const unknown = { clusterPrice: null, rentalPercentage: null, rentedCount: null, minDisk: null, minDownload: null }
  const known = { supportPublicIp: false, compliance: [], gpuTypeCudaVersions: [] }
  const always = { ...unknown, minUpload: null, countryCode: null, ...known }
  assert.deepEqual(await price('{ gpuCount: 1 }'), {
    rest: { ...always, maxGpuCount: 2, maxUnreservedGpuCount: 2, availableGpuCounts: [1, 2] },
    places: new Set(['AVAILABLE']),
  })
  assert.deepEqual(await price('{ gpuCount: 1, secureCloud: false }'), {
    rest: { ...always, maxGpuCount: 0, maxUnreservedGpuCount: 0, availableGpuCounts: [] },
    places: new Set(['UNAVAILABLE']),
  })
})

test('a machine with less memory or fewer vCPUs than are asked for has no GPU in stock', async t => {
  const rig = await machineWith(t, 1)
  const stock = async (price: object) => {
    const query = `query ($price: GpuLowestPriceInput) {
      gpuTypes(input: { id: "${RTX}" }) { lowestPrice(input: $price) { stockStatus minMemory minVcpu } } }`
    const { stockStatus, minMemory, minVcpu } = (await rig.graphql(query, { price })).gpuTypes[0].lowestPrice
    return [stockStatus, minMemory, minVcpu]
  }
  assert.deepEqual(await stock({ minMemoryInGb: 32, minVcpuCount: 8 }), ['Low', 32, 8])
  assert.deepEqual(await stock({ minMemoryInGb: 33 }), [null, null, null])
  assert.deepEqual(await stock({ minVcpuCount: 9 }), [null, null, null])
})

test('a CPU flavor has what the machine has left for a size', async t => {
  const rig = await machineWith(t, 0)
  const query = `query ($flavor: CpuFlavorInput, $specifics: SpecificsInput) {
    cpuFlavors(input: $flavor) { id minVcpu maxVcpu ramMultiplier specifics(input: $specifics) { stockStatus } } }`
  const stock = async (instanceId: string) => {
    const variables = { flavor: { id: 'cpu3g' }, specifics: { instanceId, dataCenterId: 'EU-RO-1' } }
    return (await rig.graphql(query, variables)).cpuFlavors[0].specifics.stockStatus
  }
  assert.deepEqual(
    [await stock('cpu3g-1-4'), await stock('cpu3g-8-32'), await stock('cpu3g-32-128'), await stock('cpu5c-2-4')],
    ['High', 'Low', null, null],
  )
})

test('data centers and pools are listed with the GPUs of this machine, without a key', async t => {
  const rig = await machineWith(t, 1)
  const query = `{ dataCenters { id name location region gpuAvailability { gpuTypeId displayName stockStatus } }
    serverlessGpuPools { id gpuTypeIds } }`
  const { json } = await rig.ask('POST', '/graphql', { key: null, body: { query } })
  const place = json.data.dataCenters.find(({ id }: { id: string }) => id === 'EU-RO-1')
  assert.deepEqual([place.location, place.region], ['RO', 'EUROPE'])
  assert.deepEqual(
    place.gpuAvailability.filter(({ stockStatus }: { stockStatus: string | null }) => stockStatus !== null),
    [{ gpuTypeId: RTX, displayName: 'RTX 4090', stockStatus: 'Low' }],
  )
  const pool = json.data.serverlessGpuPools.find(({ id }: { id: string }) => id === 'ADA_24')
  assert.deepEqual(pool.gpuTypeIds, [RTX])
})
