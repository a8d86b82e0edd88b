import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Command } from 'commander'
import type { ExplanationView, WaitCause } from '../../core/observing/explanation.ts'
import { accessProblem } from '../../disk/access-problem.ts'
import { ask, type ConnectionOptions, wantsJson, withConnection } from '../client/connection.ts'
import { KINDS } from '../client/kinds.ts'
import { findId } from '../client/names.ts'
import { readText } from '../client/text-files.ts'
import { CliError, EXIT } from '../exit.ts'
import { type HubTest, type HubTests, readHubTests } from '../hub-tests.ts'
import { onOneLine } from '../terminal/table.ts'
import { printText } from '../terminal/terminal-text.ts'

interface TestOptions extends ConnectionOptions {
  readonly endpoint?: string
  readonly container?: boolean
}

interface Job {
  readonly id: string
  readonly status: string
  readonly error?: string
  readonly delayTime?: number
  readonly executionTime?: number
}

/** Result of a test. */
interface Result {
  readonly name: string
  readonly passed: boolean
  /** Status of its job. */
  readonly status: string
  /** Time from submission to end, including the start of a worker. */
  readonly ms: number
  readonly executionTime: number | null
  readonly error: string | null
}

/** Length of one long poll for the end of a job, in ms. Between polls it asks why a queued job waits. */
const WAIT_MS = 5_000
/** Minimum execution timeout of an endpoint or job, in ms. */
const MIN_TIMEOUT_MS = 5_000
/** Maximum wait of a test for a worker, in ms: images are downloaded and models loaded. */
const START_MS = 1_800_000
/** A file of tests, for those who have none. */
const EXAMPLE = '{"tests": [{"name": "greets", "input": {"name": "Ada"}}]}'
const FINAL: ReadonlySet<string> = new Set(['COMPLETED', 'FAILED', 'CANCELLED', 'TIMED_OUT'])
/** Causes that waiting does not resolve. */
const HOPELESS: ReadonlySet<WaitCause> = new Set([
  ...(['paused', 'image_error', 'secret_missing', 'volume_missing', 'settings_invalid', 'crash_loop'] as const),
  ...(['out_of_memory', 'fitness_failed', 'hung_start'] as const),
])

/** `runyard test <folder>`: runs the tests of a worker. */
export function addTest(program: Command): void {
  const command = program
    .command('test')
    .argument('<folder>', 'the folder of a worker, with .runpod/tests.json in it')
    .option('-e, --endpoint <name>', 'run them on this endpoint of a server that runs, by name or id')
    .option('--container', 'build the Dockerfile of the folder and run it in a container')
  withConnection(command)
    .summary("run the tests of a worker's .runpod/tests.json")
    .description("run the tests of a worker's .runpod/tests.json as jobs; ends with 1 when one fails")
    .action(test)
}

async function test(folder: string, options: TestOptions): Promise<void> {
  const path = resolve(folder)
  const hubTests = readFile(path)
  if (options.endpoint !== undefined) {
    if (options.container === true) throw new CliError('--container builds what --endpoint has already', EXIT.usage)
    const endpoint = await findId(options, KINDS.endpoints, options.endpoint, '--endpoint')
    await runAll(hubTests, { ...options, connection: options, endpoint })
    return
  }
  const { startTemporaryServer } = await import('../client/temporary-server.ts')
  const server = await startTemporaryServer(path, options.container === true)
  const onSignal = () => {
    process.exitCode = 130
    void server.stop().then(() => process.exit())
  }
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal)
  try {
    const endpoint = server.endpointId
    const body = { env: hubTests.env, workers: { max: 1 } }
    await ask(server.connection, `/v2/serverless/${endpoint}`, { method: 'PATCH', body })
    await runAll(hubTests, { ...options, connection: server.connection, endpoint })
  } finally {
    await server.stop()
  }
  // Exit explicitly: the server may keep connections open for a while.
  process.exit()
}

function readFile(folder: string): HubTests {
  const file = join(folder, '.runpod', 'tests.json')
  const closed = accessProblem(file, 'read')
  if (closed !== null) throw new CliError(`the tests cannot be read: ${closed}`, EXIT.refused)
  if (!existsSync(folder)) throw new CliError(`there is no folder ${folder}`, EXIT.notFound)
  if (!existsSync(file)) throw new CliError(`there is no ${file}; put jobs into it, such as ${EXAMPLE}`, EXIT.notFound)
  const reading = readHubTests(readText(file))
  if (!('mistakes' in reading)) return reading
  const list = reading.mistakes.map(mistake => `\n  ${mistake}`).join('')
  throw new CliError(`${reading.mistakes.length} thing(s) are wrong in ${file}:${list}`, EXIT.data)
}

/** The server of the tests, and the output of their results. */
interface Run {
  readonly connection: ConnectionOptions
  readonly endpoint: string
  readonly json?: boolean
}

async function runAll({ tests }: HubTests, run: Run): Promise<void> {
  let failed = 0
  for (const test of tests) {
    const result = await runOne(test, run)
    if (!result.passed) failed += 1
    printText(wantsJson(run) ? `${JSON.stringify(result)}\n` : resultText(result))
  }
  process.stderr.write(`${tests.length - failed} passed, ${failed} failed\n`)
  if (failed > 0) process.exitCode = 1
}

async function runOne(test: HubTest, { connection, endpoint }: Run): Promise<Result> {
  const base = `/v2/${encodeURIComponent(endpoint)}`
  const { name, input, timeoutMs } = test
  const policy = timeoutMs === null ? {} : { policy: { executionTimeout: Math.max(timeoutMs, MIN_TIMEOUT_MS) } }
  const began = performance.now()
  const body = { input, ...policy }
  const { id } = (await (await ask(connection, `${base}/run`, { method: 'POST', body })).json()) as Job
  for (;;) {
    const job = (await (await ask(connection, `${base}/status-sync/${id}?wait=${WAIT_MS}`)).json()) as Job
    const ms = Math.round(performance.now() - began)
    const { status, executionTime = null } = job
    if (FINAL.has(status)) {
      const error = findProblem(job, timeoutMs)
      return { name, passed: error === null, status, ms, executionTime, error }
    }
    const error = status === 'IN_QUEUE' ? await findHopelessCause(connection, `${base}/explain/${id}`, ms) : null
    if (error === null) continue
    await ask(connection, `${base}/cancel/${id}`, { method: 'POST' })
    return { name, passed: false, status, ms, executionTime, error }
  }
}

/** The reason of a failed test; null if it passed. */
function findProblem({ status, error, executionTime = 0 }: Job, timeoutMs: number | null): string | null {
  if (status === 'COMPLETED') {
    return timeoutMs !== null && executionTime > timeoutMs
      ? `it ran for ${executionTime} ms, longer than its timeout of ${timeoutMs} ms`
      : null
  }
  return readable(error ?? `its job ended as ${status}`)
}

/** The reason for which no worker will ever claim the job; null while one may. */
async function findHopelessCause(connection: ConnectionOptions, path: string, ms: number): Promise<string | null> {
  const { cause, summary, action, evidence } = (await (await ask(connection, path)).json()) as ExplanationView
  if (!HOPELESS.has(cause) && ms < START_MS) return null
  return [summary, ...(action === null ? [] : [`-> ${action}`]), ...evidence.map(line => `| ${line}`)].join('\n')
}

/** Workers report an exception as JSON, with its traceback. */
function readable(error: string): string {
  try {
    const { error_type: type, error_message: message, error_traceback: traceback } = JSON.parse(error)
    if (typeof message !== 'string') return error
    return typeof traceback === 'string' && traceback.includes(message) ? traceback.trimEnd() : `${type}: ${message}`
  } catch {
    return error
  }
}

function resultText({ name, passed, ms, error }: Result): string {
  const head = `${passed ? 'passed' : 'FAILED'}  ${name}  ${(ms / 1000).toFixed(1)} s`
  const lines = error === null ? [] : error.split('\n').map(line => `  ${line}`)
  // Worker output may contain terminal control characters.
  return `${[head, ...lines].map(onOneLine).join('\n')}\n`
}
