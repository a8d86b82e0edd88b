/** GPUs of AMD, as `amd-smi` or the older `rocm-smi` reports them. */
import type { MachineGpu } from '../../core/hardware/inventory.ts'
import { type GpuReading, NO_TOOL } from './nvidia-gpus.ts'
import { quoteFirstLine, runTool, type ToolOptions } from './vendor-tool.ts'

/** The members of an unchecked object. */
export type Fields = Readonly<Record<string, unknown>>

/** Asks the newer tool, and the older one if the newer is missing. */
export async function readAmd(options: ToolOptions): Promise<GpuReading> {
  const run = await runTool('amd-smi', ['static', '--asic', '--vram', '--driver', '--json'], options)
  if (run.state === 'missing') return readRocm(options)
  if (run.state === 'failed') return { ...NO_TOOL, state: 'failed', problem: run.problem }
  const list = await runTool('amd-smi', ['list', '--json'], options)
  return parseReading('amd-smi', run.text, text => parseAmd(text, list.state === 'done' ? list.text : '[]'))
}

async function readRocm(options: ToolOptions): Promise<GpuReading> {
  const args = ['--showproductname', '--showmeminfo', 'vram', '--showuniqueid', '--showdriverversion', '--json']
  const run = await runTool('rocm-smi', args, options)
  if (run.state === 'missing') return NO_TOOL
  if (run.state === 'failed') return { ...NO_TOOL, state: 'failed', problem: run.problem }
  return parseReading('rocm-smi', run.text, parseRocm)
}

function parseReading(tool: string, text: string, parse: (text: string) => MachineGpu[]): GpuReading {
  try {
    return { state: 'read', gpus: parse(text), lost: [], problem: null }
  } catch {
    return { ...NO_TOOL, state: 'failed', problem: `${tool} printed what cannot be read${quoteFirstLine(text)}` }
  }
}

/** The JSON of `amd-smi static` and `amd-smi list`. @throws for anything else */
function parseAmd(text: string, list: string): MachineGpu[] {
  const ids = new Map(parseRows(list).map(row => [Number(row.gpu), row.uuid]))
  return parseRows(text).flatMap(row => {
    const [asic, vram, driver] = [asFields(row.asic), asFields(row.vram), asFields(row.driver)]
    const size = asFields(vram.size)
    const index = Number(row.gpu)
    const memoryMb = Number(size.value) * (size.unit === 'GB' ? 1024 : 1)
    return describeGpu(index, ids.get(index), asic.market_name, memoryMb / 1024, driver.version)
  })
}

/** The JSON of `rocm-smi`. @throws for anything else */
function parseRocm(text: string): MachineGpu[] {
  const whole = asFields(JSON.parse(text))
  const driver = asFields(whole.system)['Driver version']
  return Object.entries(whole).flatMap(([card, value]) => {
    const index = /^card(\d+)$/.exec(card)?.[1]
    if (index === undefined) return []
    const row = asFields(value)
    const id = row['Unique ID']
    const uuid = typeof id === 'string' && id.startsWith('0x') ? `GPU-${id.slice(2)}` : null
    const memoryGb = Number(row['VRAM Total Memory (B)']) / 2 ** 30
    return describeGpu(
      Number(index),
      uuid,
      row['Card Series'] ?? row['Card series'] ?? row['Device Name'],
      memoryGb,
      driver,
    )
  })
}

function describeGpu(index: number, uuid: unknown, name: unknown, memoryGb: number, driver: unknown): MachineGpu[] {
  if (!Number.isInteger(index) || typeof name !== 'string' || !(memoryGb > 0)) return []
  // Some versions leave out the vendor, which marks a type as one of AMD.
  const full = /^\s*AMD\b/i.test(name) ? name : `AMD ${name}`
  return [
    {
      index,
      uuid: typeof uuid === 'string' ? uuid : null,
      name: full,
      vendor: 'AMD',
      memoryGb: Math.round(memoryGb),
      driver: typeof driver === 'string' ? driver : null,
      cuda: null,
      mig: null,
      problem: null,
    },
  ]
}

/** The list of GPUs in the JSON of `amd-smi`: newer versions put it into an object. @throws for anything else */
export function parseRows(text: string): Fields[] {
  const whole: unknown = JSON.parse(text)
  const rows = Array.isArray(whole) ? whole : asFields(whole).gpu_data
  if (!Array.isArray(rows)) throw new SyntaxError('no list of GPUs')
  return rows.map(asFields)
}

/** The members of an object; none of anything else. */
export function asFields(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {}
}
