/** Memory of NVIDIA cards, as `nvidia-smi` reports it. */
import type { ChildProcess } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { type CardReading, type GpuMemory, type ProcessOnCard, withOwners } from '../../core/hardware/gpu-memory.ts'
import type { Clock } from '../../ports/clock.ts'
import type { GpuMeter } from '../../ports/gpu-meter.ts'
import { quoteFirstLine, runTool, type ToolOptions } from '../hardware/vendor-tool.ts'

const FORMAT = '--format=csv,noheader,nounits'
const CARDS = '--query-gpu=index,uuid,memory.total,memory.used,memory.free'
const PROCESSES = '--query-compute-apps=pid,gpu_uuid,used_gpu_memory'
const TOOL_MS = 10_000
/** Limit of characters of the name of a program. */
const MAX_NAME = 40
const MIB = 2 ** 20

/** @param env its PATH finds the tool */
export function createGpuMeter(clock: Clock, env: NodeJS.ProcessEnv): GpuMeter {
  const options: ToolOptions = { clock, env, timeoutMs: TOOL_MS, hung: new Map<string, ChildProcess>() }
  return { measure: pids => measure(options, pids) }
}

async function measure(options: ToolOptions, pids: ReadonlySet<number>): Promise<GpuMemory> {
  const [cards, processes] = await Promise.all([
    runTool('nvidia-smi', [CARDS, FORMAT], options),
    runTool('nvidia-smi', [PROCESSES, FORMAT], options),
  ])
  if (cards.state === 'missing' || processes.state === 'missing') return failed('nvidia-smi is missing')
  if (cards.state === 'failed') return failed(cards.problem)
  if (processes.state === 'failed') return failed(processes.problem)
  const readings = parseCardMemory(cards.text, processes.text)
  if (readings.length === 0) return failed(`nvidia-smi printed what cannot be read${quoteFirstLine(cards.text)}`)
  const named = await Promise.all(readings.map(withNames))
  return { cards: named.map(card => withOwners(card, pids)), problem: null }
}

async function withNames(card: CardReading): Promise<CardReading> {
  const processes = card.processes.map(async process => ({ ...process, name: await programName(process.pid) }))
  return { ...card, processes: await Promise.all(processes) }
}

/** Name of the file of a program, or the name that it gave itself. Its arguments may have secrets. */
async function programName(pid: number): Promise<string | null> {
  const text = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
  const [path = ''] = text.split('\0', 1)
  const name = basename(path).replace(/\p{C}/gu, ' ').trim().slice(0, MAX_NAME)
  return name === '' ? null : name
}

function failed(problem: string): GpuMemory {
  return { cards: [], problem }
}

/**
 * The lines of a query for index, id, and MiB in total, used and free, and of one for pid, id of the card and MiB.
 * Lines without such values are left out. Names are null.
 */
export function parseCardMemory(cards: string, processes: string): CardReading[] {
  const byCard = Map.groupBy(parseRows(processes, 3), ([, uuid]) => uuid)
  return parseRows(cards, 5).flatMap(([index = '', uuid = '', total, used, free]) => {
    const [totalBytes, usedBytes, freeBytes] = [total, used, free].map(bytesFromMib)
    if (!/^\d+$/.test(index) || totalBytes == null || usedBytes == null || freeBytes == null) return []
    const cardProcesses = (byCard.get(uuid) ?? []).flatMap(([pid = '', , mib]): ProcessOnCard[] =>
      /^\d+$/.test(pid) ? [{ pid: Number(pid), name: null, bytes: bytesFromMib(mib) }] : [],
    )
    return [{ index: Number(index), uuid, totalBytes, usedBytes, freeBytes, processes: cardProcesses }]
  })
}

function parseRows(text: string, columns: number): string[][] {
  const rows = text.split('\n').map(line => line.split(',').map(word => word.trim()))
  return rows.filter(row => row.length === columns)
}

function bytesFromMib(mib: string | undefined): number | null {
  return mib !== undefined && /^\d+$/.test(mib) ? Number(mib) * MIB : null
}
