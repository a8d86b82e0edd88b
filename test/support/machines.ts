/** Machines with a given number of GPUs. */
import type { MachineGpu, MachineParts } from '../../src/core/hardware/inventory.ts'

/** A healthy GPU. */
export function aGpu(index: number, name = 'NVIDIA GeForce RTX 4090', fields: Partial<MachineGpu> = {}): MachineGpu {
  return {
    index,
    uuid: `GPU-${index}`,
    name,
    vendor: 'NVIDIA',
    memoryGb: 24,
    driver: '550.54.15',
    cuda: '12.4',
    mig: null,
    problem: null,
    ...fields,
  }
}

/** A machine with 8 vCPUs and 32 GB, and the given GPUs. */
export function aMachine(gpus: readonly MachineGpu[] = [], fields: Partial<MachineParts> = {}): MachineParts {
  return { vcpus: 8, memoryGb: 32, gpus, hadGpus: gpus.length > 0, problem: null, ...fields }
}
