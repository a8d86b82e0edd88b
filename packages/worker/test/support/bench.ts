/** Starts the fixture worker against a stub platform and cleans both up when the test ends. */
import { type ChildProcess, spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Rules, Stub } from './stub.ts'

export const fixture = fileURLToPath(new URL('../fixtures/handler.mjs', import.meta.url))

type Cleanup = { after(action: () => unknown): void }
type Ended = { code: number | null; signal: string | null; ms: number }

export class Child {
  readonly process: ChildProcess
  readonly ended: Promise<Ended>
  stdout = ''
  stderr = ''

  /** @param stdout a file for its output in place of a pipe */
  constructor(args: string[], env: Record<string, string>, cwd?: string, stdout?: number) {
    const { PATH = '', HOME = '' } = process.env
    const began = performance.now()
    const options = { env: { PATH, HOME, ...env }, ...(cwd ? { cwd } : {}) }
    this.process = spawn(process.execPath, args, { ...options, stdio: ['pipe', stdout ?? 'pipe', 'pipe'] })
    this.process.stdout?.on('data', text => {
      this.stdout += text
    })
    this.process.stderr?.on('data', text => {
      this.stderr += text
    })
    this.ended = new Promise(resolve => {
      this.process.on('close', (code, signal) => resolve({ code, signal, ms: performance.now() - began }))
    })
  }

  /** Sends the signal and resolves to the exit of the process and the time until then, in ms. */
  async end(signal: NodeJS.Signals): Promise<Ended> {
    const began = performance.now()
    this.process.kill(signal)
    return { ...(await this.ended), ms: performance.now() - began }
  }

  logLines(): { requestId: string | null; message: string; level: string }[] {
    return this.stdout
      .trim()
      .split('\n')
      .filter(line => line !== '')
      .map(line => JSON.parse(line))
  }
}

export type Setup = {
  rules?: Rules
  options?: object
  env?: Record<string, string>
  jobs?: object[]
  stdout?: number
  /** True for a platform that takes several results in one call. */
  joins?: boolean
}

/** A stub platform and one worker on it. Jobs get the ids j1, j2, … and the given objects as input. */
export async function bench(t: Cleanup, { rules, options = {}, env = {}, jobs = [], stdout, joins }: Setup = {}) {
  const stub = new Stub(rules)
  await stub.listen()
  stub.queue(...jobs.map((input, index) => ({ id: `j${index + 1}`, input })))
  const variables = { ...stub.env(joins), WORKER_OPTIONS: JSON.stringify(options), ...env }
  const child = new Child([fixture], variables, undefined, stdout)
  t.after(async () => {
    child.process.kill('SIGKILL')
    await child.ended
    await stub.close()
  })
  return { stub, child }
}

/** Number of tests of a file that run at once: each starts a process, which is slow on a busy machine. */
export const atOnce = { concurrency: 4 }

/** Resolves to the first truthy value of `look`; rejects with a message after 30 s. */
export async function until<T>(what: string, look: () => T | undefined | false | null | 0): Promise<T> {
  const deadline = performance.now() + 30_000
  for (;;) {
    const value = look()
    if (value) return value
    if (performance.now() > deadline) throw new Error(`still waiting for ${what}`)
    await sleep(5)
  }
}

/** The body of the job's final post, once it has arrived. */
export function final(stub: Stub, jobId: string): Promise<Record<string, unknown>> {
  const isFinal = (body: unknown) => (body as { status?: string }).status !== 'IN_PROGRESS'
  return until(`the result of ${jobId}`, () => stub.bodies('job-done', jobId).find(isFinal)) as Promise<
    Record<string, unknown>
  >
}
