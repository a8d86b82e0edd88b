/** Runs tools of vendors with limits of time and output, and without waiting for an end that may never come. */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import type { Clock } from '../../ports/clock.ts'

/** Result of a run. */
export type ToolRun =
  | { readonly state: 'missing' }
  | { readonly state: 'failed'; readonly problem: string; readonly text: string }
  | { readonly state: 'done'; readonly text: string }

/** Options of runs: the search path and the time limit. */
export interface ToolOptions {
  readonly clock: Clock
  readonly env: NodeJS.ProcessEnv
  readonly timeoutMs: number
  /** Killed runs that have not ended yet, by the names of their programs; kept by the caller. */
  readonly hung: Map<string, ChildProcess>
}

const MAX_BYTES = 4 * 1024 * 1024
const MAX_QUOTED = 200

/** False for a closed folder, from which the system runs nothing either. */
function isInPath(name: string, path: string): boolean {
  return path.split(delimiter).some(folder => existsSync(join(folder, name)))
}

/**
 * Runs a program. One that is not in the PATH of its environment is missing without a try: the start of a process
 * holds up this one for milliseconds, also where there is nothing to start. At its time limit a program is killed
 * with all its processes, without waiting for their end: a process that hangs in its driver cannot be killed. As long
 * as one remains, the program is not run again.
 */
export function runTool(name: string, args: readonly string[], options: ToolOptions): Promise<ToolRun> {
  const { clock, env, timeoutMs, hung } = options
  const earlier = hung.get(name)
  if (earlier !== undefined && isRunning(earlier)) {
    return Promise.resolve({ state: 'failed', problem: `${name} hangs and cannot be killed`, text: '' })
  }
  if (env.PATH !== undefined && !isInPath(name, env.PATH)) return Promise.resolve({ state: 'missing' })
  return new Promise(resolve => {
    const child = spawn(name, args, { env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
    const out: Buffer[] = []
    const err: Buffer[] = []
    let bytes = 0
    const text = () => Buffer.concat(out).toString('utf8')
    const end = (run: ToolRun) => {
      cancel()
      killGroup(child)
      child.stdout.destroy()
      child.stderr.destroy()
      child.unref()
      resolve(run)
    }
    const fail = (problem: string) => end({ state: 'failed', problem: `${name} ${problem}`, text: text() })
    const cancel = clock.after(timeoutMs, () => {
      hung.set(name, child)
      fail(`did not end within ${timeoutMs / 1000} s`)
    })
    const collect = (parts: Buffer[]) => (part: Buffer) => {
      bytes += part.length
      if (bytes > MAX_BYTES) fail('printed too much')
      else parts.push(part)
    }
    child.stdout.on('data', collect(out))
    child.stderr.on('data', collect(err))
    child.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') end({ state: 'missing' })
      else fail(`cannot be run: ${error.code ?? error.message}`)
    })
    child.on('close', (code, signal) => {
      if (code === 0) end({ state: 'done', text: text() })
      else fail(`ended with ${signal ?? `code ${code}`}${quoteFirstLine(text(), Buffer.concat(err).toString('utf8'))}`)
    })
  })
}

/** The first line with text, for a problem's sentence. */
export function quoteFirstLine(...texts: readonly string[]): string {
  const lines = texts.flatMap(text => text.split('\n')).map(line => line.replace(/\p{C}+/gu, ' ').trim())
  const first = lines.find(line => line !== '')
  return first === undefined ? '' : `: ${first.slice(0, MAX_QUOTED)}`
}

function isRunning({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode === null && signalCode === null
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined || !isRunning(child)) return
  try {
    process.kill(-child.pid, 'SIGKILL')
  } catch {
    // The tool ended in the meantime.
  }
}
