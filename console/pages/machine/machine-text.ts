/** The machine in words and measures. */
import type { Diagnosis, Machine } from '../../client/api-types.d.ts'
import { bytes, count } from '../../format.ts'

/** The used part of one resource. */
export interface Measure {
  readonly name: string
  readonly used: number | null
  readonly total: number | null
  readonly text: string
  readonly note: string
}

const BYTES_PER_MB = 2 ** 20

/** Measures of vCPU, memory, disk and places for workers. */
export function machineMeasures({ vcpus, memoryMb, disk, workers }: Machine): Measure[] {
  const size = (megabytes: number) => bytes(megabytes * BYTES_PER_MB)
  const places = workers.free === null ? null : workers.total + workers.free
  return [
    {
      name: 'vCPU',
      used: vcpus.used,
      total: vcpus.total,
      text: `${count(vcpus.used)} of ${count(vcpus.total)}`,
      note: 'what workers are limited to, together',
    },
    {
      name: 'Memory',
      used: memoryMb.used,
      total: memoryMb.total,
      text: memoryMb.used === null ? size(memoryMb.total) : `${size(memoryMb.used)} of ${size(memoryMb.total)}`,
      note: memoryMb.assigned === 0 ? 'no worker has a limit' : `workers are limited to ${size(memoryMb.assigned)}`,
    },
    {
      name: 'Disk',
      used: disk === null ? null : disk.totalBytes - disk.availableBytes,
      total: disk?.totalBytes ?? null,
      text: disk === null ? 'not known' : `${bytes(disk.availableBytes)} free of ${bytes(disk.totalBytes)}`,
      note: 'of the data directory',
    },
    {
      name: 'Workers',
      used: places === null ? null : workers.total,
      total: places,
      text: places === null ? count(workers.total) : `${count(workers.total)} of ${count(places)}`,
      note: workers.bound,
    },
  ]
}

/** A finding with its state as a shape and a word. */
export interface ShownFinding {
  readonly check: string
  readonly tone: 'good' | 'wait' | 'bad' | 'off'
  readonly word: string
  readonly message: string
  readonly action: string | null
}

type Finding = Diagnosis['findings'][number]

const TONES = { ok: 'good', warn: 'wait', fail: 'bad', skip: 'off' } as const
const WORDS = { ok: 'well', warn: 'warning', fail: 'fails', skip: 'not tested' } as const
const ORDER: readonly Finding['state'][] = ['fail', 'warn', 'skip', 'ok']

/** Findings, the worst first. */
export function shownFindings(findings: readonly Finding[]): ShownFinding[] {
  return [...findings]
    .sort((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state))
    .map(({ state, ...finding }) => ({ ...finding, tone: TONES[state], word: WORDS[state] }))
}
