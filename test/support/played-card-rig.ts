/** A rig with one played card, on which workers can be suspended. */
import { type PlayedGpuOptions, PlayedGpus } from '../../sim/played-gpus.ts'
import { aGpu, aMachine } from './machines.ts'
import { openRig, type RigOptions } from './rig.ts'

/** Bytes of a GiB. */
export const GIB = 2 ** 30

/** Fields of an endpoint whose workers need a card and are frozen when they idle. */
export const FLASH_GPU = {
  flashBootType: 'FLASHBOOT',
  idleTimeout: 1,
  gpuIds: 'ADA_24',
  instanceIds: undefined,
  workersMax: 1,
}

type Faults = Pick<PlayedGpuOptions, 'fails' | 'copyMs' | 'onHold'>

/** A machine with one card of 24 GB, where each worker has 20 GB of it. */
export async function openCards(t: Parameters<typeof openRig>[0], faults: Faults = {}, options: RigOptions = {}) {
  const machine: { gpus: PlayedGpus | null; runs: number } = { gpus: null, runs: 0 }
  const rig = await openRig(t, {
    ...options,
    onStart: spec =>
      machine.gpus?.start(
        spec.workerId,
        spec.placement.gpus.map(({ uuid }) => uuid ?? ''),
        20,
      ),
    processes: worker => machine.gpus?.family(worker) ?? null,
    gpuSuspender: ({ clock, fleet }) => {
      machine.runs += 1
      const run = machine.runs
      machine.gpus ??= new PlayedGpus({
        clock,
        isFrozen: worker => fleet.frozen.has(worker),
        isAlive: worker => fleet.running().includes(worker),
        ...faults,
      })
      return machine.gpus.suspender(() => run !== machine.runs)
    },
  })
  rig.machine = aMachine([aGpu(0)])
  const end = () => {
    machine.runs += 1
  }
  return { rig, gpus: machine.gpus!, end, endpoint: (fields: object = {}) => rig.endpoint({ ...FLASH_GPU, ...fields }) }
}
