import { execFile } from 'node:child_process'
import { availableParallelism, totalmem } from 'node:os'
import { promisify } from 'node:util'
import type { Clock } from '../ports/clock.ts'
import type { Machine, MachineGpu, MachineParts } from '../ports/machine.ts'

const TOOL_MS = 5_000
const KEPT_MS = 30_000

/** This machine, read anew every half minute at most. GPUs are those that `nvidia-smi` lists. */
export function createMachine(clock: Clock): Machine {
  let known: { parts: Promise<MachineParts>; untilMs: number } | null = null
  return {
    parts() {
      if (known === null || known.untilMs <= clock.monotonic()) {
        known = { parts: readParts(), untilMs: clock.monotonic() + KEPT_MS }
      }
      return known.parts
    },
  }
}

async function readParts(): Promise<MachineParts> {
  return { vcpus: availableParallelism(), memoryGb: Math.floor(totalmem() / 2 ** 30), gpus: await readGpus() }
}

async function readGpus(): Promise<MachineGpu[]> {
  const query = ['--query-gpu=name,memory.total', '--format=csv,noheader,nounits']
  try {
    const { stdout } = await promisify(execFile)('nvidia-smi', query, { timeout: TOOL_MS, maxBuffer: 1024 * 1024 })
    return parseGpus(stdout)
  } catch {
    return []
  }
}

/** Lines of `name, MiB`, as the tool writes them. */
export function parseGpus(text: string): MachineGpu[] {
  return text.split('\n').flatMap(line => {
    const parts = /^(.+), *(\d+)$/.exec(line.trim())
    return parts === null ? [] : [{ name: parts[1]!, memoryGb: Math.round(Number(parts[2]) / 1024) }]
  })
}
