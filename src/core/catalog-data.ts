/** Facts of the public catalogue: pools, GPU types, data centers, CPU flavors. Data only; see catalog.ts for questions to it. */

/** A GPU pool: workers of an endpoint that names it run on any of its types. */
export interface GpuPool {
  readonly id: string
  readonly memoryGb: number
  readonly gpuTypes: readonly string[]
}

/** A kind of CPU machine. `ramGbPerVcpu` is null where the catalogue does not say. */
export interface CpuFlavor {
  readonly id: string
  readonly ramGbPerVcpu: number | null
}

/** All GPU pools. */
export const GPU_POOLS: readonly GpuPool[] = [
  {
    id: 'AMPERE_16',
    memoryGb: 16,
    gpuTypes: [
      'NVIDIA RTX A4000',
      'NVIDIA RTX A4500',
      'NVIDIA RTX 4000 Ada Generation',
      'NVIDIA RTX 2000 Ada Generation',
    ],
  },
  { id: 'AMPERE_24', memoryGb: 24, gpuTypes: ['NVIDIA L4', 'NVIDIA RTX A5000', 'NVIDIA GeForce RTX 3090'] },
  { id: 'ADA_24', memoryGb: 24, gpuTypes: ['NVIDIA GeForce RTX 4090'] },
  { id: 'ADA_32_PRO', memoryGb: 32, gpuTypes: ['NVIDIA GeForce RTX 5090'] },
  { id: 'AMPERE_48', memoryGb: 48, gpuTypes: ['NVIDIA A40', 'NVIDIA RTX A6000'] },
  { id: 'ADA_48_PRO', memoryGb: 48, gpuTypes: ['NVIDIA L40', 'NVIDIA L40S', 'NVIDIA RTX 6000 Ada Generation'] },
  { id: 'AMPERE_80', memoryGb: 80, gpuTypes: ['NVIDIA A100 80GB PCIe', 'NVIDIA A100-SXM4-80GB'] },
  { id: 'ADA_80_PRO', memoryGb: 80, gpuTypes: ['NVIDIA H100 80GB HBM3', 'NVIDIA H100 PCIe', 'NVIDIA H100 NVL'] },
  {
    id: 'BLACKWELL_96',
    memoryGb: 96,
    gpuTypes: [
      'NVIDIA RTX PRO 6000 Blackwell Server Edition',
      'NVIDIA RTX PRO 6000 Blackwell Workstation Edition',
      'NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition',
    ],
  },
  { id: 'HOPPER_141', memoryGb: 141, gpuTypes: ['NVIDIA H200'] },
  { id: 'BLACKWELL_180', memoryGb: 180, gpuTypes: ['NVIDIA B200'] },
]

/** CPU flavors that endpoints can use. */
export const CPU_FLAVORS: readonly CpuFlavor[] = [
  { id: 'cpu3c', ramGbPerVcpu: 2 },
  { id: 'cpu3g', ramGbPerVcpu: 4 },
  { id: 'cpu5c', ramGbPerVcpu: 2 },
  { id: 'cpu5g', ramGbPerVcpu: null },
]

/** Country codes that `locations` takes. */
export const LOCATION_CODES: readonly string[] = ['CZ', 'FR', 'GB', 'NO', 'RO', 'US']

/** Ids of all known data centers. */
export const DATA_CENTERS: readonly string[] = [
  'AP-JP-1',
  'CA-MTL-1',
  'CA-MTL-2',
  'CA-MTL-3',
  'EU-CZ-1',
  'EU-FR-1',
  'EU-NL-1',
  'EU-RO-1',
  'EU-SE-1',
  'EUR-IS-1',
  'EUR-IS-2',
  'EUR-IS-3',
  'EUR-NO-1',
  'OC-AU-1',
  'US-CA-2',
  'US-DE-1',
  'US-GA-1',
  'US-GA-2',
  'US-IL-1',
  'US-KS-1',
  'US-KS-2',
  'US-KS-3',
  'US-MD-1',
  'US-MO-1',
  'US-MO-2',
  'US-NC-1',
  'US-NC-2',
  'US-NE-1',
  'US-OR-1',
  'US-TX-1',
  'US-TX-3',
  'US-TX-4',
  'US-WA-1',
]
