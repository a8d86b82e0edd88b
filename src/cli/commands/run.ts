import { createInterface } from 'node:readline'
import { type Command, Option } from 'commander'
import { compactJson, indentedJson, JsonText, jsonText } from '../../core/json/json-format.ts'
import { answerValue, jsonLine, memberJson, parsed } from '../client/answers.ts'
import { ask, type ConnectionOptions, wantsJson, withConnection } from '../client/connection.ts'
import { events } from '../client/event-stream.ts'
import { jsonArgument } from '../client/fields.ts'
import { withEndpointName } from '../client/names.ts'
import { fieldOption, setsSecrets } from '../client/option-fields.ts'
import { parseSpan } from '../client/option-words.ts'
import { ReconnectBackoff } from '../client/reconnect-backoff.ts'
import { CliError, EXIT } from '../exit.ts'
import { jobErrorText } from '../terminal/job-error.ts'
import { JobProgress } from '../terminal/job-progress.ts'
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
    .summary('run one job and print its output')
    .description('run one job, wait for it and print its output; ends with 1 when it did not complete')
    .action(run)
}

/** Adds the options of a submitted job. */
export function withSubmission(command: Command): Command {
  return withPolicy(command.addOption(inputOption().makeOptionMandatory()))
}

/** Adds the options of a submitted job, whose input may be left out. */
export function withInput(command: Command): Command {
  return withPolicy(command.addOption(inputOption()))
}

function inputOption(): Option {
  return setsSecrets(
    new Option('-i, --input <json>', 'the input as JSON, such as \'{"n": 1}\', @file or - for standard input'),
    'input',
  )
}

function withPolicy(command: Command): Command {
  return command
    .addOption(
      fieldOption('--timeout <ms>', 'execution timeout of the job; also such as 90s', 'policy.executionTimeout'),
    )
    .addOption(fieldOption('--webhook <url>', 'URL to call when the job ends', 'webhook'))
    .addOption(
      fieldOption('--low-priority', 'after all other jobs, and without starting a worker', 'policy.lowPriority'),
    )
}

/** Runs one job of an endpoint, by its id or name, and prints its outcome. */
export async function run(endpoint: string, options: RunOptions): Promise<void> {
  const body = submission(options)
  const { path, job } = await withEndpointName(options, endpoint, async id => {
    const path = `/v2/${encodeURIComponent(id)}`
    const submitted = await ask(options, `${path}/run`, { method: 'POST', body })
    return { path, job: await answerValue<Job>(submitted) }
  })
  if (options.detach === true) {
    printText(wantsJson(options) ? `${jsonLine(job)}\n` : `${job.id}\n`)
    return
  }
  const progress = new JobProgress(options, path, job.id)
  const offer = offerCancel(options, path, job.id, progress)
  progress.begin()
  try {
    if (options.stream === true) await printStream(options, `${path}/stream/${job.id}`, progress)
    const end = await waitFor(options, `${path}/status-sync/${job.id}?wait=${WAIT_MS}`)
    // The end of a cancelled job may come before the response to its cancellation.
    await offer.cancelling()
    progress.end()
    printEnd(end, options)
  } finally {
    offer.end()
    progress.end()
  }
}

/** The exit code of a command that Ctrl-C ended. */
const INTERRUPTED = 130

/** The handling of Ctrl-C while a command waits for a job. */
interface CancelOffer {
  /** Resolves at once, unless the job is being cancelled: then the process ends instead. */
  cancelling(): Promise<unknown>
  end(): void
}

/** Ctrl-C ends the wait, not the job: on a terminal it asks if the job should be cancelled too. */
function offerCancel(options: RunOptions, path: string, id: string, progress: JobProgress): CancelOffer {
  let cancelled: Promise<unknown> = Promise.resolve()
  const leave = () => {
    printText(`job ${id} goes on; runyard jobs get ${id} shows it, runyard jobs cancel ${id} ends it\n`, process.stderr)
    process.exit(INTERRUPTED)
  }
  const askToCancel = () => {
    progress.end()
    // A second one while it asks ends the wait at once.
    process.once('SIGINT', leave)
    if (process.stdin.isTTY !== true) return leave()
    const question = createInterface({ input: process.stdin, output: process.stderr })
    question.once('close', leave)
    question.question(`\ncancel job ${id}? [y/N] `, answer => {
      question.removeListener('close', leave)
      question.close()
      if (!/^y(?:es)?$/i.test(answer.trim())) return leave()
      cancelled = ask(options, `${path}/cancel/${id}`, { method: 'POST' }).then(
        () => {
          printText(`job ${id} is cancelled\n`, process.stderr)
          process.exit(INTERRUPTED)
        },
        (error: Error) => {
          printText(`runyard: ${error.message}\n`, process.stderr)
          process.exit(INTERRUPTED)
        },
      )
    })
  }
  process.once('SIGINT', askToCancel)
  return { cancelling: () => cancelled, end: () => void process.removeListener('SIGINT', askToCancel) }
}

/** The request body that submits a job. @throws CliError for an invalid option */
export function submission({ input, timeout, webhook, lowPriority }: SubmitOptions): object {
  const timeoutMs = timeout === undefined || /^\d+$/.test(timeout) ? timeout : parseSpan(timeout, 1)
  if (timeoutMs === null)
    throw new CliError(`--timeout takes whole milliseconds, or a time such as 90s, not '${timeout}'`, EXIT.usage)
  const policy = {
    ...(timeoutMs === undefined ? {} : { executionTimeout: new JsonText(String(BigInt(timeoutMs))) }),
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

async function waitFor(options: RunOptions, path: string): Promise<Job> {
  const backoff = jobBackoff()
  for (;;) {
    try {
      const job = await answerValue<Job>(await ask(options, path))
      backoff.answered()
      if (FINAL.has(job.status)) return job
    } catch (error) {
      await backoff.after(error)
    }
  }
}

/** Prints chunks one by one. Text is printed as it is, so that tokens join to words again. */
async function printStream(options: RunOptions, path: string, progress: JobProgress): Promise<void> {
  for await (const { event, data } of events(options, path, 'status', jobBackoff())) {
    if (event !== 'message' && event !== 'chunk') continue
    progress.clear()
    printChunk(data, options)
  }
}

function printChunk(text: string, options: RunOptions): void {
  const chunk = parsed<{ output: unknown }>(text)
  const output = memberJson(chunk, 'output')
  if (wantsJson(options)) printText(`${compactJson(jsonText({ chunk: output }))}\n`)
  else printText(typeof chunk.output === 'string' ? chunk.output : `${compactJson(jsonText(output))}\n`)
}

function printEnd(job: Job, options: RunOptions): void {
  if (job.status !== 'COMPLETED') process.exitCode = 1
  if (wantsJson(options)) {
    printText(`${jsonLine(job)}\n`)
    return
  }
  if (options.stream === true) process.stdout.write('\n')
  else if (job.output !== undefined) printText(`${indentedJson(jsonText(memberJson(job, 'output')))}\n`)
  const times = `waited ${job.delayTime ?? 0} ms, ran ${job.executionTime ?? 0} ms`
  const error = job.error === undefined ? '' : `\n${jobErrorText(job.error)}`
  printText(`${job.status} ${job.id} (${times})${error}\n`, process.stderr)
}
