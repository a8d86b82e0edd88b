/**
 * Runs the server for development: `npm run dev [-- <options of runyard serve>]`. It starts `runyard serve --sample`,
 * restarts it when a file of `src` changes, and stops it with this program. `--inspect` and `--inspect-brk` go to
 * Node instead of the server.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { watch } from 'node:fs'
import { constants } from 'node:os'
import { fileURLToPath } from 'node:url'

const SOURCES = fileURLToPath(new URL('../src', import.meta.url))
const ENTRY = fileURLToPath(new URL('../src/cli/runyard.ts', import.meta.url))
/** Pause before a restart in which further files may change, in milliseconds. */
const SETTLE_MS = 150
/** Time after which a server that does not stop is killed, in milliseconds. */
const STOP_MS = 10_000
/** Interval of the checks that npm still runs, in milliseconds. */
const PARENT_MS = 500

const args = process.argv.slice(2)
const isForNode = (argument: string) => argument.startsWith('--inspect')
// Workers get a short time to finish, and call the server directly: a relay would still run the previous code.
const options = ['--sample', '--direct-workers', '--drain-timeout', '2', ...args.filter(text => !isForNode(text))]
const nodeOptions = ['--max-semi-space-size=32', '--no-allocation-site-pretenuring', ...args.filter(isForNode)]

let server: ChildProcess | null = null
let isEnding = false
let restart: Promise<void> | null = null

/** Starts the server in a process group of its own, so that Ctrl-C reaches it once, through this program. */
function start(): void {
  const child = spawn(process.execPath, [...nodeOptions, ENTRY, 'serve', ...options], {
    stdio: 'inherit',
    detached: true,
  })
  server = child
  child.on('exit', (code, signal) => {
    if (server === child) server = null
    if (!isEnding && restart === null) printLine(`the server ended (${signal ?? code}); it starts again after a change`)
  })
}

/** Stops the server and waits for its end, after which its port and its data directory are free. */
async function stop(): Promise<void> {
  const child = server
  if (child === null) return
  const ended = new Promise(resolve => child.once('exit', resolve))
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
  await ended
  clearTimeout(timer)
}

async function startAgain(): Promise<void> {
  let changesBefore: number
  do {
    changesBefore = changes
    await new Promise(resolve => setTimeout(resolve, SETTLE_MS))
    await stop()
  } while (changesBefore !== changes)
  restart = null
  if (!isEnding) start()
}

async function end(signal: NodeJS.Signals): Promise<void> {
  if (isEnding) return
  isEnding = true
  await stop()
  process.exit(128 + constants.signals[signal])
}

function printLine(text: string): void {
  process.stderr.write(`dev: ${text}\n`)
}

let changes = 0
watch(SOURCES, { recursive: true }, (_event, file) => {
  if (isEnding || file?.endsWith('.ts') !== true) return
  changes += 1
  if (restart !== null) return
  printLine(`src/${file} changed, restarting`)
  restart = startAgain()
})
// npm may end without a signal to this process.
const parent = process.ppid
setInterval(() => process.ppid !== parent && void end('SIGHUP'), PARENT_MS)
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => void end(signal))
start()
