/**
 * Facts of the public catalog: pools, GPU types, data centers, CPU flavors. Data only; catalog.ts has the questions
 * to it.
 */

/** A GPU pool: workers of an endpoint that names it run on any of its types. */
export interface GpuPool {
  readonly id: string
  readonly memoryGb: number
  readonly gpuTypes: readonly string[]
  /** Price of the hosted service for an hour, in US dollars; null if it is not published. */
  readonly pricePerHour: number | null
}

/** A kind of CPU machine. `ramGbPerVcpu` is null if the catalog does not give it. */
export interface CpuFlavor {
  readonly id: string
  readonly name: string
  readonly group: string
  readonly ramGbPerVcpu: number | null
}

/** All GPU pools. */
export const GPU_POOLS: readonly GpuPool[] = [
  {
    id: 'AMPERE_16',
    pricePerHour: 0.576,
    memoryGb: 16,
    gpuTypes: [
      'NVIDIA RTX A4000',
      'NVIDIA RTX A4500',
      'NVIDIA RTX 4000 Ada Generation',
      'NVIDIA RTX 2000 Ada Generation',
    ],
  },
  {
    id: 'AMPERE_24',
    pricePerHour: 0.684,
    memoryGb: 24,
    gpuTypes: ['NVIDIA L4', 'NVIDIA RTX A5000', 'NVIDIA GeForce RTX 3090'],
  },
  { id: 'ADA_24', pricePerHour: 1.116, memoryGb: 24, gpuTypes: ['NVIDIA GeForce RTX 4090'] },
  { id: 'ADA_32_PRO', pricePerHour: null, memoryGb: 32, gpuTypes: ['NVIDIA GeForce RTX 5090'] },
  { id: 'AMPERE_48', pricePerHour: 1.224, memoryGb: 48, gpuTypes: ['NVIDIA A40', 'NVIDIA RTX A6000'] },
  {
    id: 'ADA_48_PRO',
    pricePerHour: 1.908,
    memoryGb: 48,
    gpuTypes: ['NVIDIA L40', 'NVIDIA L40S', 'NVIDIA RTX 6000 Ada Generation'],
  },
  { id: 'AMPERE_80', pricePerHour: 2.736, memoryGb: 80, gpuTypes: ['NVIDIA A100 80GB PCIe', 'NVIDIA A100-SXM4-80GB'] },
  {
    id: 'ADA_80_PRO',
    pricePerHour: 4.176,
    memoryGb: 80,
    gpuTypes: ['NVIDIA H100 80GB HBM3', 'NVIDIA H100 PCIe', 'NVIDIA H100 NVL'],
  },
  {
    id: 'BLACKWELL_96',
    pricePerHour: 3.996,
    memoryGb: 96,
    gpuTypes: [
      'NVIDIA RTX PRO 6000 Blackwell Server Edition',
      'NVIDIA RTX PRO 6000 Blackwell Workstation Edition',
      'NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition',
    ],
  },
  { id: 'HOPPER_141', pricePerHour: 5.58, memoryGb: 141, gpuTypes: ['NVIDIA H200'] },
  { id: 'BLACKWELL_180', pricePerHour: 8.64, memoryGb: 180, gpuTypes: ['NVIDIA B200'] },
]

/** CPU flavors that endpoints can use. */
export const CPU_FLAVORS: readonly CpuFlavor[] = [
  { id: 'cpu3c', name: 'Compute-Optimized', group: 'Gen 3', ramGbPerVcpu: 2 },
  { id: 'cpu3g', name: 'General-Purpose', group: 'Gen 3', ramGbPerVcpu: 4 },
  { id: 'cpu5c', name: 'Compute-Optimized', group: 'Gen 5', ramGbPerVcpu: 2 },
  { id: 'cpu5g', name: 'General-Purpose', group: 'Gen 5', ramGbPerVcpu: null },
]

/** Country codes that `locations` takes. */
export const LOCATION_CODES: readonly string[] = ['CZ', 'FR', 'GB', 'NO', 'RO', 'US']
