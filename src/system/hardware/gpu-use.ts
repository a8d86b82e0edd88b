/** The use of GPUs at this moment, as the vendors' tools report it. */
import type { GpuUse } from '../../core/hardware/machine-use.ts'
import { asFields, parseRows } from './amd-gpus.ts'
import { runTool, type ToolOptions } from './vendor-tool.ts'

/** The use of whole cards by the index that the vendor's tool gives. */
export type UseByIndex = ReadonlyMap<number, GpuUse>

const NONE: UseByIndex = new Map()

const NVIDIA_QUERY = [
  '--query-gpu=index,utilization.gpu,memory.used,memory.total',
  '--format=csv,noheader,nounits',
] as const

/** Asks NVIDIA's tool. Empty where it is missing or fails. */
export async function readNvidiaUse(options: ToolOptions): Promise<UseByIndex> {
  const run = await runTool('nvidia-smi', NVIDIA_QUERY, options)
  return run.state === 'done' ? parseNvidiaUse(run.text) : NONE
}

/** Asks AMD's newer tool, and the older one if the newer is missing. Empty when both are missing or one fails. */
export async function readAmdUse(options: ToolOptions): Promise<UseByIndex> {
  const run = await runTool('amd-smi', ['metric', '--usage', '--mem-usage', '--json'], options)
  if (run.state === 'done') return parsed(run.text, parseAmdUse)
  if (run.state === 'failed') return NONE
  const older = await runTool('rocm-smi', ['--showuse', '--showmeminfo', 'vram', '--json'], options)
  return older.state === 'done' ? parsed(older.text, parseRocmUse) : NONE
}

/**
 * The lines of a query for index, percent, and MiB of memory in use and in all. Values that a
 * card does not report are null.
 */
export function parseNvidiaUse(text: string): UseByIndex {
  const uses = new Map<number, GpuUse>()
  for (const line of text.split('\n')) {
    const [index = '', busy, used, total] = line.split(',').map(word => word.trim())
    if (/^\d+$/.test(index)) uses.set(Number(index), { busy: percent(busy, 100), memory: percent(used, total) })
  }
  return uses
}

/** The JSON of `amd-smi metric`. @throws for anything else */
export function parseAmdUse(text: string): UseByIndex {
  return new Map(
    parseRows(text).map(row => {
      const [usage, memory] = [asFields(row.usage), asFields(row.mem_usage)]
      const value = (measure: unknown) => asFields(measure).value
      const use: GpuUse = {
        busy: percent(value(usage.gfx_activity), 100),
        memory: percent(value(memory.used_vram), value(memory.total_vram)),
      }
      return [Number(row.gpu), use]
    }),
  )
}

/** The JSON of `rocm-smi`. @throws for anything else */
function parseRocmUse(text: string): UseByIndex {
  const uses = new Map<number, GpuUse>()
  for (const [card, value] of Object.entries(asFields(JSON.parse(text)))) {
    const index = /^card(\d+)$/.exec(card)?.[1]
    if (index === undefined) continue
    const row = asFields(value)
    const memory = percent(row['VRAM Total Used Memory (B)'], row['VRAM Total Memory (B)'])
    uses.set(Number(index), { busy: percent(row['GPU use (%)'], 100), memory })
  }
  return uses
}

function parsed(text: string, parse: (text: string) => UseByIndex): UseByIndex {
  try {
    return parse(text)
  } catch {
    return NONE
  }
}

/** In whole percent; null where one of the values is no number. */
function percent(part: unknown, whole: unknown): number | null {
  const [used, all] = [readNumber(part), readNumber(whole)]
  return used === null || all === null || all <= 0 ? null : Math.min(100, Math.round((100 * used) / all))
}

function readNumber(value: unknown): number | null {
  if (typeof value === 'string' && value.trim() === '') return null
  const number = typeof value === 'number' || typeof value === 'string' ? Number(value) : Number.NaN
  return Number.isFinite(number) && number >= 0 ? number : null
}
