import type { Command } from 'commander'
import { ask, type ConnectionOptions, wantsJson, withConnection } from '../client/connection.ts'
import { withEndpointName } from '../client/endpoint-names.ts'
import { events } from '../client/event-stream.ts'
import { jsonArgument } from '../client/fields.ts'
import { ReconnectBackoff } from '../client/reconnect-backoff.ts'
import { CliError, EXIT } from '../exit.ts'
import { printText } from '../terminal/terminal-text.ts'

/** Options of a submitted job. */
export interface SubmitOptions extends ConnectionOptions {
  readonly input: string
  readonly timeout?: string
  readonly webhook?: string
  readonly lowPriority?: boolean
}

interface RunOptions extends SubmitOptions {
  readonly detach?: boolean
  readonly stream?: boolean
}

interface Job {
  readonly id: string
  readonly status: string
  readonly output?: unknown
  readonly error?: string
  readonly delayTime?: number
  readonly executionTime?: number
}

/** Length of one long poll for the end of the job, in ms. */
const WAIT_MS = 10_000
const FINAL: ReadonlySet<string> = new Set(['COMPLETED', 'FAILED', 'CANCELLED', 'TIMED_OUT'])

/** `runyard run <endpoint> --input ...`: runs one job and waits for it. */
export function addRun(program: Command): void {
  const command = program
    .command('run')
    .argument('<endpoint>', 'the id or the name of a queue endpoint')
    .option('-s, --stream', 'print chunks as they come, for handlers that stream')
    .option('-d, --detach', 'print the id of the job and do not wait')
  withConnection(withSubmission(command))
    .description('run one job, wait for it and print its output; ends with 1 when it did not complete')
    .action(run)
}

/** Adds the options of a submitted job. */
export function withSubmission(command: Command): Command {
  return command
    .requiredOption('-i, --input <json>', 'the input as JSON, @file or - for standard input')
    .option('--timeout <ms>', 'execution timeout of the job')
    .option('--webhook <url>', 'URL to call when the job ends')
    .option('--low-priority', 'after all other jobs, and without starting a worker')
}

async function run(endpoint: string, options: RunOptions): Promise<void> {
  const body = submission(options)
  const { path, job } = await withEndpointName(options, endpoint, async id => {
    const path = `/v2/${encodeURIComponent(id)}`
    const submitted = await ask(options, `${path}/run`, { method: 'POST', body })
    return { path, job: (await submitted.json()) as Job }
  })
  if (options.detach === true) {
    printText(wantsJson(options) ? `${JSON.stringify(job)}\n` : `${job.id}\n`)
    return
  }
  const progress = new Progress(options)
  if (options.stream === true) await printStream(options, `${path}/stream/${job.id}`, progress)
  const end = await waitFor(options, `${path}/status-sync/${job.id}?wait=${WAIT_MS}`, progress)
  progress.clear()
  printEnd(end, options)
}

/** The request body that submits a job. @throws CliError for an invalid option */
export function submission({ input, timeout, webhook, lowPriority }: SubmitOptions): object {
  if (timeout !== undefined && !/^\d+$/.test(timeout)) {
    throw new CliError(`--timeout takes whole milliseconds, not '${timeout}'`, EXIT.usage)
  }
  const policy = {
    ...(timeout === undefined ? {} : { executionTimeout: Number(timeout) }),
    ...(lowPriority === true ? { lowPriority } : {}),
  }
  return {
    input: jsonArgument(input, '--input'),
    ...(webhook === undefined ? {} : { webhook }),
    ...(Object.keys(policy).length > 0 ? { policy } : {}),
  }
}

/** Waits for an accepted job, also across restarts of the server. */
function jobBackoff(): ReconnectBackoff {
  const backoff = new ReconnectBackoff()
  backoff.answered()
  return backoff
}

async function waitFor(options: RunOptions, path: string, progress: Progress): Promise<Job> {
  const backoff = jobBackoff()
  for (;;) {
    try {
      const job = (await (await ask(options, path)).json()) as Job
      backoff.answered()
      if (FINAL.has(job.status)) return job
      progress.show(job)
    } catch (error) {
      await backoff.after(error)
    }
  }
}

/** Prints chunks one by one. Text is printed as it is, so that tokens join to words again. */
async function printStream(options: RunOptions, path: string, progress: Progress): Promise<void> {
  for await (const { event, data } of events(options, path, 'status', jobBackoff())) {
    if (event !== 'message' && event !== 'chunk') continue
    progress.clear()
    printChunk(data, options)
  }
}

function printChunk(text: string, options: RunOptions): void {
  const { output } = JSON.parse(text) as { output: unknown }
  if (wantsJson(options)) printText(`${JSON.stringify({ chunk: output })}\n`)
  else printText(typeof output === 'string' ? output : `${JSON.stringify(output)}\n`)
}

function printEnd(job: Job, options: RunOptions): void {
  if (job.status !== 'COMPLETED') process.exitCode = 1
  if (wantsJson(options)) {
    printText(`${JSON.stringify(job)}\n`)
    return
  }
  if (options.stream === true) process.stdout.write('\n')
  else if (job.output !== undefined) printText(`${JSON.stringify(job.output, null, 2)}\n`)
  const times = `waited ${job.delayTime ?? 0} ms, ran ${job.executionTime ?? 0} ms`
  const error = job.error === undefined ? '' : `\n${job.error}`
  printText(`${job.status} ${job.id} (${times})${error}\n`, process.stderr)
}

/** A status line on standard error that is rewritten in place; nothing if that is not a terminal. */
class Progress {
  readonly #shows: boolean
  #shown = false

  constructor(options: RunOptions) {
    this.#shows = process.stderr.isTTY === true && !wantsJson(options)
  }

  show({ id, status, delayTime = 0, executionTime = 0 }: Job): void {
    if (!this.#shows) return
    const seconds = Math.round((status === 'IN_QUEUE' ? delayTime : executionTime) / 1000)
    process.stderr.write(`\r\u001b[2K${id} ${status === 'IN_QUEUE' ? 'waits' : 'runs'} for ${seconds} s`)
    this.#shown = true
  }

  clear(): void {
    if (this.#shown) process.stderr.write('\r\u001b[2K')
    this.#shown = false
  }
}
