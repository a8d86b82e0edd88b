/**
 * Readiness of a machine to suspend processes: requirements of the driver, the cards, the machine and the processes.
 */
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { CardMemory } from '../../core/hardware/gpu-memory.ts'
import {
  type FamilyLack,
  isOldDriver,
  type ProcessStart,
  type SuspendLack,
  type SuspendReadiness,
} from '../../core/hardware/gpu-suspension.ts'
import { readOptional } from '../../disk/optional-files.ts'
import { readProcess } from '../../drivers/base/process-table.ts'
import { readMemories } from '../hardware/memory.ts'
import { runTool, type ToolOptions } from '../hardware/vendor-tool.ts'
import { askHelper, replyProblem } from './helper-process.ts'

const QUERY = ['--query-gpu=index,driver_version,mig.mode.current', '--format=csv,noheader,nounits']
const ABOUT_MS = 10_000
/** Memory that the host keeps beside the copies: the driver's own for each process, and a reserve for others. */
const SPARE_BYTES = 2 ** 30
/** Memory of a copy beyond that listed by the driver for the process. */
const EXTRA_BYTES = 512 * 2 ** 20

/** Checks tool, library and system. @param tool its environment is that of the helper, too */
export async function readReadiness(tool: ToolOptions): Promise<SuspendReadiness> {
  const unknown = { driver: null, cuda: null }
  const system = `${process.platform} ${process.arch}`
  if (system !== 'linux x64') return { ...unknown, lack: { why: 'platform', platform: system } }
  const run = await runTool('nvidia-smi', QUERY, tool)
  if (run.state === 'missing') return { ...unknown, lack: { why: 'no_card' } }
  if (run.state === 'failed') {
    const lack: SuspendLack = /no devices were found/i.test(run.text)
      ? { why: 'no_card' }
      : { why: 'no_reading', problem: run.problem }
    return { ...unknown, lack }
  }
  const cards = run.text.split('\n').map(line => line.split(',').map(word => word.trim()))
  const rows = cards.filter(([index = '']) => /^\d+$/.test(index))
  const driver = rows[0]?.[1] ?? null
  if (driver === null) return { ...unknown, lack: { why: 'no_card' } }
  const reply = await askHelper(tool, { op: 'about' }, ABOUT_MS)
  const cuda = reply.about?.cuda ?? null
  const parted = rows.find(([, , mig]) => mig === 'Enabled')
  return { driver, cuda, lack: await findLack() }

  async function findLack(): Promise<SuspendLack | null> {
    if (isOldDriver(driver!)) return { why: 'old_driver', driver: driver! }
    if (reply.missing !== undefined) return { why: 'no_library' }
    const problem = replyProblem(reply)
    if (problem !== null) return { why: 'no_helper', problem }
    if (reply.about!.lacks.length > 0) return { why: 'no_calls', lacks: reply.about!.lacks }
    if (parted !== undefined) return { why: 'mig', index: Number(parted[0]) }
    return (await hasMps()) ? { why: 'mps' } : null
  }
}

/** True if the control program of MPS runs, or its server. */
async function hasMps(): Promise<boolean> {
  const pids = (await readdir('/proc').catch(() => [])).filter(entry => /^\d+$/.test(entry))
  for (const pid of pids) {
    const name = await readFile(`/proc/${pid}/comm`, 'latin1').catch(() => '')
    // The system keeps the first 15 letters.
    if (name.startsWith('nvidia-cuda-mps')) return true
  }
  return false
}

/**
 * Reason why a family cannot be suspended; null without one.
 * @param cards the cards that its processes use
 */
export async function familyLack(
  processes: readonly CudaProcess[],
  cards: readonly CardMemory[],
): Promise<FamilyLack | null> {
  if (cards.length > 1) return { why: 'several_cards', count: cards.length }
  const listed = new Set(cards.flatMap(card => card.processes).map(({ pid }) => pid))
  for (const { pid, thread } of processes) {
    if (!listed.has(pid)) return { why: 'not_listed', pid }
    if (isHeld(thread)) return { why: 'stopped', pid }
    const owner = await stat(`/proc/${pid}`).catch(() => null)
    const me = process.geteuid?.() ?? 0
    if (owner !== null && me !== 0 && owner.uid !== me) return { why: 'another_user', pid }
  }
  return memoryLack(processes, cards)
}

/** A process with CUDA, and its thread that belongs to the driver and answers it. */
export interface CudaProcess extends ProcessStart {
  readonly thread: number
}

/** True if a thread is stopped by a signal, or frozen with its control group. */
export function isHeld(thread: number): boolean {
  // The system shows threads by their ids, as it shows processes.
  if (readProcess(thread)?.stopped === true) return true
  const group = /^0::(.*)$/m.exec(readOptional(`/proc/${thread}/cgroup`))?.[1]
  if (group === undefined) return false
  // Beside groups of version 1, those of version 2 are in a folder of their own.
  const roots = ['/sys/fs/cgroup', '/sys/fs/cgroup/unified']
  return roots.some(root => readOptional(join(root, group, 'cgroup.events')).includes('frozen 1'))
}

/** The copies count as memory of the processes and so for their control groups. */
function memoryLack(processes: readonly ProcessStart[], cards: readonly CardMemory[]): FamilyLack | null {
  const pids = new Set(processes.map(({ pid }) => pid))
  const listed = cards.flatMap(card => card.processes).filter(({ pid }) => pids.has(pid))
  const copied = listed.reduce((sum, { bytes }) => sum + (bytes ?? 0), 0)
  const neededBytes = copied + processes.length * EXTRA_BYTES
  for (const { pid } of processes) {
    const { machine, groups } = readMemories(pid)
    if (machine !== null && machine.availableBytes - SPARE_BYTES < neededBytes)
      return {
        why: 'host_memory',
        neededBytes,
        availableBytes: Math.max(0, machine.availableBytes - SPARE_BYTES),
      }
    const freeBytes = Math.min(...groups.map(({ availableBytes }) => availableBytes))
    if (freeBytes < neededBytes) return { why: 'group_memory', neededBytes, availableBytes: freeBytes }
  }
  return null
}
