/** The device files of the GPUs that a worker was given, and of no others. */
import { join } from 'node:path'
import type { AssignedGpu } from '../../core/workers/placement.ts'
import { listOptional, readOptional } from '../../disk/optional-files.ts'
import { amdDevices } from '../base/amd-devices.ts'

/**
 * Device files that all GPUs of a vendor share. `/dev/dxg` is that of Windows' subsystem for Linux, which has one for
 * all cards.
 */
const NVIDIA = ['/dev/nvidiactl', '/dev/nvidia-uvm', '/dev/nvidia-uvm-tools', '/dev/nvidia-modeset', '/dev/dxg']
/** Limit of device files of the parts of a card. */
const MAX_PARTS = 256

/**
 * The device files of a worker. Whether they exist is not checked.
 * @param root of the file system that is looked at
 * @throws WorkerStartError for a GPU of AMD that the kernel does not list
 */
export function gpuDevices(gpus: readonly AssignedGpu[], root = '/'): string[] {
  if (gpus.length === 0) return []
  if (gpus[0]?.type.startsWith('AMD ') === true) return [...amdDevices(gpus, root).paths]
  const cards = readCards(root)
  const devices = gpus.flatMap(gpu => {
    const minor = findMinor(gpu, cards)
    const parts = gpu.uuid?.startsWith('MIG-') === true ? listMigDevices(minor, root) : []
    return [`/dev/nvidia${minor}`, ...parts]
  })
  return [...new Set([...NVIDIA, ...devices])]
}

interface Card {
  readonly uuid: string | null
  readonly minor: number
}

/**
 * The driver numbers its device files by itself; the vendor's tool counts cards in the order of their places on the
 * bus.
 */
function findMinor({ index, uuid }: Pick<AssignedGpu, 'index' | 'uuid'>, cards: readonly Card[]): number {
  const card = cards.find(listed => listed.uuid !== null && listed.uuid === uuid) ?? cards[index]
  return card?.minor ?? index
}

/** The cards in the order of the bus; empty where the driver does not list them. */
function readCards(root: string): Card[] {
  const folder = join(root, 'proc/driver/nvidia/gpus')
  return listOptional(folder)
    .sort()
    .flatMap(name => {
      const text = readOptional(join(folder, name, 'information'))
      const minor = /^Device Minor:[ \t]*(\d{1,4})$/m.exec(text)?.[1]
      const uuid = /^GPU UUID:[ \t]*(GPU-[0-9a-f-]{36})$/m.exec(text)?.[1] ?? null
      return minor === undefined ? [] : [{ uuid, minor: Number(minor) }]
    })
}

/**
 * Those of a card that is split (MIG), without the one that splits it: all of the card, since the kernel does not list
 * which part has which.
 */
function listMigDevices(minor: number, root: string): string[] {
  const mig = join(root, `proc/driver/nvidia/capabilities/gpu${minor}/mig`)
  const instances = namesBelow(mig, 'gi')
  const folders = instances.flatMap(instance => [instance, ...namesBelow(instance, 'ci')])
  const devices = folders.slice(0, MAX_PARTS).flatMap(folder => {
    const number = /^DeviceFileMinor:[ \t]*(\d{1,6})$/m.exec(readOptional(join(folder, 'access')))?.[1]
    return number === undefined ? [] : [`/dev/nvidia-caps/nvidia-cap${number}`]
  })
  return devices
}

function namesBelow(folder: string, start: string): string[] {
  return listOptional(folder)
    .filter(name => name.startsWith(start))
    .map(name => join(folder, name))
}
