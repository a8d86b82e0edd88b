import { cpuMemoryGb } from '../hardware/catalog.ts'
import type { CpuConfig } from './endpoint.ts'

/** The id of a CPU configuration, flavor-vcpus-memory, such as `cpu3g-4-16`. */
export function formatInstanceId({ flavor, vcpuCount }: CpuConfig): string {
  return `${flavor}-${vcpuCount}-${cpuMemoryGb(flavor, vcpuCount)}`
}

/** CPU configuration of an id such as `cpu3g-4-16`, whose memory follows from the rest; null for other text. */
export function parseInstanceId(id: string): CpuConfig | null {
  const parts = /^([a-z0-9]+)-([1-9]\d{0,3})-([1-9]\d{0,5})$/.exec(id)
  return parts === null ? null : { flavor: parts[1]!, vcpuCount: Number(parts[2]) }
}
