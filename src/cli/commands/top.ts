import { setTimeout as pause } from 'node:timers/promises'
import { styleText } from 'node:util'
import { type Command, InvalidArgumentError } from 'commander'
import { ask, type ConnectionOptions, serverUrl, wantsJson, withConnection } from '../client/connection.ts'
import { withEndpointName } from '../client/names.ts'
import { CliError, EXIT } from '../exit.ts'
import { TerminalScreen } from '../terminal/terminal-screen.ts'
import { printText } from '../terminal/terminal-text.ts'
import { Rates, type ScreenLine, type Style, type TopAnswer, type TopGpu, topScreen } from '../terminal/top-screen.ts'

interface TopOptions extends ConnectionOptions {
  readonly interval: number
  readonly count?: number
}

/** Width of a screen in a pipe. */
const PIPE_COLUMNS = 100

/** Timeout of one request, in ms. */
const ANSWER_MS = 10_000

/** `runyard top [endpoint]`: workers, jobs and queues, refreshed in place. */
export function addTop(program: Command): void {
  const command = program
    .command('top')
    .argument('[endpoint]', 'the id or the name of one endpoint; all without it')
    .option('-i, --interval <seconds>', 'how often it is refreshed', seconds, 2)
    .option('-c, --count <times>', 'number of refreshes before the end', times)
  withConnection(command)
    .summary('watch endpoints, workers and jobs in place')
    .description('watch endpoints and workers: phases, GPUs, jobs and how long they are held; q ends it')
    .action(top)
}

async function top(endpoint: string | undefined, options: TopOptions): Promise<void> {
  if (endpoint === undefined) return watchOrPrint(options, new TopReader(options, '/ops/top', true))
  return withEndpointName(options, endpoint, id => {
    const path = `/ops/top?endpoint=${encodeURIComponent(id)}`
    return watchOrPrint(options, new TopReader(options, path, false))
  })
}

async function watchOrPrint(options: TopOptions, reader: TopReader): Promise<void> {
  if (wantsJson(options)) return printLines(options, reader)
  if (process.stdout.isTTY !== true) return printScreens(options, reader)
  // The first request runs before the screen opens, so that a wrong URL or key fails as in every other command.
  const first = await reader.read(AbortSignal.timeout(ANSWER_MS))
  const screen = new TerminalScreen()
  try {
    await watch(options, reader, first, screen)
  } finally {
    screen.close()
  }
}

/** Screens one below the other, for a pipe or a file: one, unless more are asked for. */
async function printScreens(options: TopOptions, reader: TopReader): Promise<void> {
  const rates = new Rates()
  for (let printed = 1; ; printed += 1) {
    const answer = await reader.read(AbortSignal.timeout(ANSWER_MS))
    const size = { columns: PIPE_COLUMNS, rows: Number.POSITIVE_INFINITY }
    const lines = topScreen(answer, { url: serverUrl(options), rates: rates.add(answer), problem: null, ...size })
    printText(`${lines.map(({ text }) => text.trimEnd()).join('\n')}\n`)
    if (printed >= (options.count ?? 1)) return
    await pause(options.interval * 1_000)
  }
}

async function watch(options: TopOptions, reader: TopReader, first: TopAnswer, screen: TerminalScreen): Promise<void> {
  const rates = new Rates()
  let answer = first
  let known = rates.add(first)
  let problem: string | null = null
  let url = serverUrl(options)
  const show = () => {
    const { columns, rows } = screen.size()
    screen.show(topScreen(answer, { url, rates: known, problem, columns, rows }).map(styled))
  }
  screen.onResize(show)
  for (let shown = 1; !screen.ended.aborted; shown += 1) {
    show()
    if (shown === options.count) return
    await pause(options.interval * 1_000, undefined, { signal: screen.ended }).catch(() => {})
    if (screen.ended.aborted) return
    try {
      const signal = AbortSignal.any([screen.ended, AbortSignal.timeout(ANSWER_MS)])
      answer = await reader.read(signal)
      known = rates.add(answer)
      // A restarted server may have another port.
      url = serverUrl(options)
      problem = null
    } catch (error) {
      if (!isAway(error)) throw error
      problem = (error as Error).message
    }
  }
}

/** A JSON line for each refresh, for programs. */
async function printLines(options: TopOptions, reader: TopReader): Promise<void> {
  for (let printed = 1; ; printed += 1) {
    try {
      printText(`${JSON.stringify(await reader.read(AbortSignal.timeout(ANSWER_MS)))}\n`)
    } catch (error) {
      if (printed === 1 || !isAway(error)) throw error
    }
    if (printed === options.count) return
    await pause(options.interval * 1_000)
  }
}

/** Reads the content of the screen. */
class TopReader {
  readonly #options
  readonly #path
  /** False where the key may not see the machine. */
  #seesMachine

  constructor(options: TopOptions, path: string, withMachine: boolean) {
    this.#options = options
    this.#path = path
    this.#seesMachine = withMachine
  }

  /** The endpoints, with the GPUs of the machine for keys of its operator. */
  async read(signal: AbortSignal): Promise<TopAnswer> {
    const answer = await this.#readJson<TopAnswer>(this.#path, signal)
    if (!this.#seesMachine) return answer
    try {
      const { gpus } = await this.#readJson<{ gpus: readonly TopGpu[] }>('/v2/machine', signal)
      return { ...answer, gpus }
    } catch (error) {
      if (isAway(error)) throw error
      this.#seesMachine = false
      return answer
    }
  }

  async #readJson<Body>(path: string, signal: AbortSignal): Promise<Body> {
    const answer = await ask(this.#options, path, { signal })
    try {
      return (await answer.json()) as Body
    } catch (error) {
      const url = serverUrl(this.#options)
      throw new CliError(`the server at ${url} broke off (${(error as Error).message})`, EXIT.unavailable)
    }
  }
}

/** True for a server that is only unavailable, such as during a restart. */
function isAway(error: unknown): boolean {
  return error instanceof CliError && error.exitCode === EXIT.unavailable
}

const FORMATS: Readonly<Record<Style, Parameters<typeof styleText>[0]>> = {
  head: 'bold',
  good: 'green',
  busy: 'yellow',
  bad: 'red',
  dim: 'dim',
}

function styled({ text, style }: ScreenLine): string {
  return style === null || text === '' ? text : styleText(FORMATS[style], text, { stream: process.stdout })
}

function seconds(text: string): number {
  const value = Number(text)
  if (/^\d{1,4}(\.\d{1,3})?$/.test(text) && value >= 0.2) return value
  throw new InvalidArgumentError('it must be a number of seconds, at least 0.2.')
}

function times(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('it must be a whole number from 1 on.')
  return Number(text)
}
