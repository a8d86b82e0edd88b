/** The command line in the process of a test, on the application of a rig in place of a server. */
import { mock } from 'node:test'
import { execute } from '../../src/cli/program.ts'
import { KEY, type Rig } from './rig.ts'

/** The result of a command and its output. */
export interface CommandEnd {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs a command with the arguments of `words`. */
export type RunsCommands = (...words: readonly string[]) => Promise<CommandEnd>

/** The command line on a rig. Commands run one after the other. @param key of all commands */
export function commandsOn(rig: Rig, key: string = KEY): RunsCommands {
  const fetched: typeof fetch = async (input, init = {}) => {
    const { pathname, search } = new URL(String(input))
    const { body, headers, signal } = init
    const { authorization = '', ...otherHeaders } = Object.fromEntries(new Headers(headers ?? {}))
    const asking = { key: authorization.replace(/^Bearer /, ''), headers: otherHeaders, type: null }
    return rig.open(
      `${pathname}${search}`,
      { ...asking, ...(body == null ? {} : { body }), ...(signal == null ? {} : { signal }) },
      init.method ?? 'GET',
    )
  }
  return (...words) =>
    captured(async () => {
      const { fetch } = globalThis
      const { env } = process
      globalThis.fetch = fetched
      process.env = { ...env, RUNYARD_URL: 'http://localhost:8080', RUNYARD_API_KEY: key }
      try {
        return await execute(['node', 'runyard', ...words], { command: null })
      } finally {
        globalThis.fetch = fetch
        process.env = env
      }
    })
}

/** A command without a server. */
export async function runAlone(...words: readonly string[]): Promise<CommandEnd> {
  // Settings of the test run, such as RUNYARD_SEEDS, do not belong to the server.
  const settings = Object.entries(process.env).filter(([name]) => name.startsWith('RUNYARD_'))
  for (const [name] of settings) delete process.env[name]
  try {
    return await captured(() => execute(['node', 'runyard', ...words], { command: null }))
  } finally {
    for (const [name, value] of settings) process.env[name] = value
  }
}

/** The text that is written during a call; the reporter of the test writes bytes. */
async function captured(run: () => Promise<number>): Promise<CommandEnd> {
  const printed = { stdout: '', stderr: '' }
  const mocks = (['stdout', 'stderr'] as const).map(name => {
    const write = process[name].write.bind(process[name]) as (...args: unknown[]) => boolean
    return mock.method(process[name], 'write', (piece: unknown, ...rest: unknown[]) => {
      if (typeof piece !== 'string') return write(piece, ...rest)
      printed[name] += piece
      return true
    })
  })
  const exitCode = process.exitCode
  try {
    const code = await run()
    return { code: code === 0 ? Number(process.exitCode ?? 0) : code, ...printed }
  } finally {
    process.exitCode = exitCode
    for (const { mock: mocked } of mocks) mocked.restore()
  }
}
