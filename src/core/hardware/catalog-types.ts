/**
 * Facts of the public catalog about single GPU types and data centers. Data only; catalog.ts has the questions to it.
 */

/** A GPU type. `pool` is null for types that serverless endpoints cannot choose. */
export interface GpuType {
  readonly id: string
  readonly name: string
  readonly memoryGb: number
  readonly manufacturer: 'NVIDIA' | 'AMD'
  readonly pool: string | null
}

/** A data center of the hosted service; here a name that endpoints and volumes can have. */
export interface DataCenter {
  readonly id: string
  readonly name: string
  readonly region: 'ASIA' | 'EUROPE' | 'NORTH_AMERICA' | 'OCEANIA'
  readonly country: string
}

type GpuRow = readonly [id: string, name: string, memoryGb: number, pool: string | null]

const GPU_ROWS: readonly GpuRow[] = [
  ['AMD Instinct MI300X OAM', 'MI300X', 192, null],
  ['NVIDIA A100 80GB PCIe', 'A100 PCIe', 80, 'AMPERE_80'],
  ['NVIDIA A100-SXM4-80GB', 'A100 SXM', 80, 'AMPERE_80'],
  ['NVIDIA A30', 'A30', 24, null],
  ['NVIDIA A40', 'A40', 48, 'AMPERE_48'],
  ['NVIDIA B200', 'B200', 180, 'BLACKWELL_180'],
  ['NVIDIA B300 SXM6 AC', 'B300', 288, null],
  ['NVIDIA GeForce RTX 3070', 'RTX 3070', 8, null],
  ['NVIDIA GeForce RTX 3080', 'RTX 3080', 10, null],
  ['NVIDIA GeForce RTX 3080 Ti', 'RTX 3080 Ti', 12, null],
  ['NVIDIA GeForce RTX 3090', 'RTX 3090', 24, 'AMPERE_24'],
  ['NVIDIA GeForce RTX 3090 Ti', 'RTX 3090 Ti', 24, null],
  ['NVIDIA GeForce RTX 4070 Ti', 'RTX 4070 Ti', 12, null],
  ['NVIDIA GeForce RTX 4080', 'RTX 4080', 16, null],
  ['NVIDIA GeForce RTX 4080 SUPER', 'RTX 4080 SUPER', 16, null],
  ['NVIDIA GeForce RTX 4090', 'RTX 4090', 24, 'ADA_24'],
  ['NVIDIA GeForce RTX 5080', 'RTX 5080', 16, null],
  ['NVIDIA GeForce RTX 5090', 'RTX 5090', 32, 'ADA_32_PRO'],
  ['NVIDIA H100 80GB HBM3', 'H100 SXM', 80, 'ADA_80_PRO'],
  ['NVIDIA H100 NVL', 'H100 NVL', 94, 'ADA_80_PRO'],
  ['NVIDIA H100 PCIe', 'H100 PCIe', 80, 'ADA_80_PRO'],
  ['NVIDIA H200', 'H200 SXM', 141, 'HOPPER_141'],
  ['NVIDIA H200 NVL', 'NVIDIA H200 NVL', 143, null],
  ['NVIDIA L4', 'L4', 24, 'AMPERE_24'],
  ['NVIDIA L40', 'L40', 48, 'ADA_48_PRO'],
  ['NVIDIA L40S', 'L40S', 48, 'ADA_48_PRO'],
  ['NVIDIA RTX 2000 Ada Generation', 'RTX 2000 Ada', 16, 'AMPERE_16'],
  ['NVIDIA RTX 4000 Ada Generation', 'RTX 4000 Ada', 20, 'AMPERE_16'],
  ['NVIDIA RTX 4000 SFF Ada Generation', 'RTX 4000 Ada SFF', 20, null],
  ['NVIDIA RTX 5000 Ada Generation', 'RTX 5000 Ada', 32, null],
  ['NVIDIA RTX 6000 Ada Generation', 'RTX 6000 Ada', 48, 'ADA_48_PRO'],
  ['NVIDIA RTX A2000', 'RTX A2000', 6, null],
  ['NVIDIA RTX A4000', 'RTX A4000', 16, 'AMPERE_16'],
  ['NVIDIA RTX A4500', 'RTX A4500', 20, 'AMPERE_16'],
  ['NVIDIA RTX A5000', 'RTX A5000', 24, 'AMPERE_24'],
  ['NVIDIA RTX A6000', 'RTX A6000', 48, 'AMPERE_48'],
  ['NVIDIA RTX PRO 4500 Blackwell', 'RTX PRO 4500', 32, null],
  ['NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition', 'RTX PRO 6000 MaxQ', 96, 'BLACKWELL_96'],
  ['NVIDIA RTX PRO 6000 Blackwell Server Edition MIG 1g.24gb', 'PRO 6000 MIG 24GB', 24, null],
  ['NVIDIA RTX PRO 6000 Blackwell Server Edition MIG 2g.48gb', 'PRO 6000 MIG 48GB', 48, null],
  ['NVIDIA RTX PRO 6000 Blackwell Server Edition', 'RTX PRO 6000', 96, 'BLACKWELL_96'],
  ['NVIDIA RTX PRO 6000 Blackwell Workstation Edition', 'RTX PRO 6000 WK', 96, 'BLACKWELL_96'],
  ['Tesla V100-PCIE-16GB', 'Tesla V100', 16, null],
  ['Tesla V100-SXM2-16GB', 'V100 SXM2', 16, null],
  ['Tesla V100-SXM2-32GB', 'V100 SXM2 32GB', 32, null],
]

/** All known GPU types. */
export const GPU_TYPES: readonly GpuType[] = GPU_ROWS.map(([id, name, memoryGb, pool]) => ({
  id,
  name,
  memoryGb,
  pool,
  manufacturer: id.startsWith('AMD ') ? 'AMD' : 'NVIDIA',
}))

type DataCenterRow = readonly [id: string, region: DataCenter['region'], country: string, name?: string]

const DATA_CENTER_ROWS: readonly DataCenterRow[] = [
  ['AP-JP-1', 'ASIA', 'JP'],
  ['CA-MTL-1', 'NORTH_AMERICA', 'CA'],
  ['CA-MTL-2', 'NORTH_AMERICA', 'CA'],
  ['CA-MTL-3', 'NORTH_AMERICA', 'CA'],
  ['EU-CZ-1', 'EUROPE', 'CZ'],
  ['EU-FR-1', 'EUROPE', 'FR'],
  ['EU-NL-1', 'EUROPE', 'NL'],
  ['EU-RO-1', 'EUROPE', 'RO'],
  ['EU-SE-1', 'EUROPE', 'SE'],
  ['EUR-IS-1', 'EUROPE', 'IS'],
  ['EUR-IS-2', 'EUROPE', 'IS'],
  ['EUR-IS-3', 'EUROPE', 'IS'],
  ['EUR-NO-1', 'EUROPE', 'NO'],
  ['OC-AU-1', 'OCEANIA', 'AU'],
  ['US-CA-2', 'NORTH_AMERICA', 'US', 'US California 2'],
  ['US-DE-1', 'NORTH_AMERICA', 'US'],
  ['US-GA-1', 'NORTH_AMERICA', 'US'],
  ['US-GA-2', 'NORTH_AMERICA', 'US'],
  ['US-IL-1', 'NORTH_AMERICA', 'US'],
  ['US-KS-1', 'NORTH_AMERICA', 'US'],
  ['US-KS-2', 'NORTH_AMERICA', 'US', 'US Kansas 2'],
  ['US-KS-3', 'NORTH_AMERICA', 'US'],
  ['US-MD-1', 'NORTH_AMERICA', 'US'],
  ['US-MO-1', 'NORTH_AMERICA', 'US'],
  ['US-MO-2', 'NORTH_AMERICA', 'US'],
  ['US-NC-1', 'NORTH_AMERICA', 'US'],
  ['US-NC-2', 'NORTH_AMERICA', 'US'],
  ['US-NE-1', 'NORTH_AMERICA', 'US'],
  ['US-OR-1', 'NORTH_AMERICA', 'US'],
  ['US-TX-1', 'NORTH_AMERICA', 'US'],
  ['US-TX-3', 'NORTH_AMERICA', 'US', 'US Texas 3'],
  ['US-TX-4', 'NORTH_AMERICA', 'US'],
  ['US-WA-1', 'NORTH_AMERICA', 'US'],
]

/** All known data centers. */
export const DATA_CENTERS: readonly DataCenter[] = DATA_CENTER_ROWS.map(([id, region, country, name]) => ({
  id,
  region,
  country,
  name: name ?? id,
}))
