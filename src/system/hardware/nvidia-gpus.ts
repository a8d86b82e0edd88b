/** GPUs of NVIDIA, as `nvidia-smi` reports them. */
import type { MachineGpu } from '../../core/hardware/inventory.ts'
import { textBefore } from '../../core/text-parts.ts'
import { quoteFirstLine, runTool, type ToolOptions } from './vendor-tool.ts'

/** The output of a vendor's tool. */
export interface GpuReading {
  /** `missing` if the tool does not exist; `failed` if its output cannot be read. */
  readonly state: 'missing' | 'failed' | 'read'
  readonly gpus: readonly MachineGpu[]
  /** GPUs that it lists and cannot read, by their index or id in its output. */
  readonly lost: readonly string[]
  /** A sentence; null without a problem. */
  readonly problem: string | null
}

/** Reading without a tool: no GPUs. */
export const NO_TOOL: GpuReading = { state: 'missing', gpus: [], lost: [], problem: null }

const QUERY = ['--query-gpu=index,uuid,name,memory.total,driver_version', '--format=csv,noheader,nounits']
/** Output of the tool for a value that a card does not report. */
const NOT_REPORTED = /^\[?(N\/A|Not Supported)\]?$/i
/** Output of the tool in place of values of a card that no longer responds. */
const BROKEN = /ERR!|Unknown Error|GPU is lost|Unable to determine|requires reset/i

/** Asks the tool. @param hostMemoryGb memory that cards without their own share */
export async function readNvidia(options: ToolOptions, hostMemoryGb: number): Promise<GpuReading> {
  const list = await runTool('nvidia-smi', QUERY, options)
  if (list.state === 'missing') return NO_TOOL
  const cards = parseCards(list.text, hostMemoryGb)
  if (cards.gpus.length === 0 && cards.lost.length === 0) {
    if (/no devices were found/i.test(list.text)) return { ...NO_TOOL, state: 'read' }
    const problem =
      list.state === 'failed' ? list.problem : `nvidia-smi printed what cannot be read${quoteFirstLine(list.text)}`
    return { state: 'failed', gpus: [], lost: [], problem }
  }
  const [details, names] = await Promise.all([
    runTool('nvidia-smi', ['-q', '-x'], options),
    runTool('nvidia-smi', ['-L'], options),
  ])
  const gpus = withParts(withDetails(cards.gpus, printedText(details)), printedText(names))
  return { state: 'read', gpus, lost: cards.lost, problem: describeProblems(gpus, cards.lost) }
}

/** The lines of a query for index, id, name, MiB and driver; `lost` are lines without values. */
function parseCards(text: string, hostMemoryGb: number): { gpus: MachineGpu[]; lost: string[] } {
  const gpus: MachineGpu[] = []
  const lost: string[] = []
  for (const line of text.split('\n').map(each => each.trim())) {
    const words = splitLine(line)
    const [index = '', uuid = '', name = '', memory = '', driver = ''] = words ?? []
    const unread = words === null || BROKEN.test(line) || NOT_REPORTED.test(name) || !/^GPU-/.test(uuid)
    if (words === null && !BROKEN.test(line)) continue
    if (unread || !(/^\d+$/.test(memory) || NOT_REPORTED.test(memory))) {
      lost.push(/^GPU-/.test(uuid) ? uuid : index === '' ? (/GPU ?([\w:.]*\w)/.exec(line)?.[1] ?? '?') : index)
      continue
    }
    gpus.push({
      index: Number(index),
      uuid,
      name,
      vendor: 'NVIDIA',
      driver,
      cuda: null,
      mig: null,
      problem: null,
      memoryGb: NOT_REPORTED.test(memory) ? hostMemoryGb : Math.round(Number(memory) / 1024),
    })
  }
  return { gpus, lost }
}

/** Index, id, name, which may have commas, memory and driver; null when one is missing. */
function splitLine(line: string): readonly string[] | null {
  const parts = line.split(',').map(part => part.trim())
  const words = [...parts.slice(0, 2), parts.slice(2, -2).join(', '), ...parts.slice(-2)]
  return parts.length < 5 || words.includes('') || !/^\d+$/.test(words[0]!) ? null : words
}

/** Adds facts of the long report: CUDA, and the problem of a card. */
function withDetails(gpus: readonly MachineGpu[], xml: string): MachineGpu[] {
  const cuda = /<cuda_version>\s*(\d+\.\d+)/.exec(xml)?.[1] ?? null
  const cards = xml.split(/<gpu id=/).slice(1)
  return gpus.map(gpu => {
    const card = cards.find(text => gpu.uuid !== null && text.includes(`<uuid>${gpu.uuid}</uuid>`)) ?? ''
    const tag = (name: string) => textBefore(card.split(`<${name}>`, 2)[1] ?? '', '<').trim()
    const recovery = tag('gpu_recovery_action')
    const problem =
      tag('remapped_row_failure') === 'Yes'
        ? 'its memory has failed'
        : /^(Reset|Reboot|Drain and Reset)$/i.test(recovery)
          ? `its driver asks for a ${recovery.toLowerCase()}`
          : null
    // Only for the next lines: a card in this mode is no GPU, its parts are.
    const mig = tag('current_mig') === 'Enabled' ? 'on' : null
    return { ...gpu, cuda, problem, mig }
  })
}

/** Replaces partitioned cards by their partitions, as `nvidia-smi -L` names them. */
function withParts(gpus: readonly MachineGpu[], names: string): MachineGpu[] {
  const parts = new Map<string, { profile: string; uuid: string }[]>()
  let card = ''
  for (const line of names.split('\n')) {
    card = /^GPU \d+:.*?\(UUID: (GPU-[^()]+)\)/.exec(line)?.[1] ?? card
    const part = /^\s+MIG (\S+)\s+Device\s+\d+: \(UUID: (MIG-[^()]+)\)/.exec(line)
    if (part !== null) parts.set(card, [...(parts.get(card) ?? []), { profile: part[1]!, uuid: part[2]! }])
  }
  return gpus.flatMap(gpu => {
    const cardParts = parts.get(gpu.uuid ?? '') ?? []
    if (cardParts.length === 0) {
      return [
        gpu.mig === null ? gpu : { ...gpu, mig: null, problem: gpu.problem ?? 'MIG is on, and it has no instances' },
      ]
    }
    return cardParts.map(({ profile, uuid }) => ({
      ...gpu,
      uuid,
      mig: profile,
      name: `${gpu.name} MIG ${profile}`,
      memoryGb: Number(/(?<!\d)(\d+)gb/.exec(profile)?.[1] ?? gpu.memoryGb),
    }))
  })
}

function printedText(run: Awaited<ReturnType<typeof runTool>>): string {
  return run.state === 'missing' ? '' : run.text
}

/** Problems of single cards, in one sentence; null without one. */
export function describeProblems(gpus: readonly MachineGpu[], lost: readonly string[]): string | null {
  const bad = gpus.filter(({ problem }) => problem !== null).map(({ index, problem }) => `GPU ${index}: ${problem}`)
  const all = [...bad, ...lost.map(id => `GPU ${id} does not answer`)]
  return all.length === 0 ? null : all.join('; ')
}
