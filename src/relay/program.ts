/**
 * The program of the relay: `program.ts <data directory> <port> [beside]`, 0 for any port; `beside` another that
 * hangs on that port. It writes relay.json, then one line. It ends on the command of a server, when its file is gone
 * or another's, or after ten minutes without use.
 */
import { randomBytes } from 'node:crypto'
import { readBootId, readProcess } from '../drivers/base/process-table.ts'
import { Relay } from './relay.ts'
import {
  RELAY_VERSION,
  readRelayInfo,
  relayFolder,
  removeRelayInfo,
  setAsideFolder,
  workerSocket,
  writeRelayInfo,
} from './relay-file.ts'

const LOOK_MS = 2_000
const IDLE_MS = 600_000
/** Maximum wait for a port that is still in use. */
const PORT_MS = 3_000
const PORT_PAUSE_MS = 50

const [dataDir = '', wantedPort = '0', beside] = process.argv.slice(2)
const identity = { pid: process.pid, startTime: readProcess(process.pid)?.startTime ?? '', bootId: readBootId() }
const secret = randomBytes(32).toString('base64url')
const relay = new Relay({ folder: relayFolder(dataDir), setAside: setAsideFolder(dataDir), secret, onEnd: end })
const port = beside === 'beside' ? await relay.listen(Number(wantedPort), true) : await listen(Number(wantedPort))
// If the system has no such socket, only workers in networks of their own miss it.
await relay.listenAt(workerSocket(dataDir)).catch(error => console.error(`no socket for workers: ${error}`))
writeRelayInfo(dataDir, { identity, port, secret, version: RELAY_VERSION })
// Its reader may have ended.
process.stdout.on('error', () => {})
process.stdout.write(`${port}\n`)

let neededAtMs = performance.now()
setInterval(() => {
  const nowMs = performance.now()
  if (!relay.idle) neededAtMs = nowMs
  if (readRelayInfo(dataDir)?.secret !== secret) process.exit(0)
  if (nowMs - neededAtMs > IDLE_MS) end()
}, LOOK_MS)

// Service managers signal every process of a service at once, and workers have yet to deliver what they
// finish. The server ends it.
for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(name, () => relay.hasServer || end())

function end(): never {
  relay.close()
  if (readRelayInfo(dataDir)?.secret === secret) removeRelayInfo(dataDir)
  process.exit(0)
}

/** The port that workers already use, if it is free. */
async function listen(port: number): Promise<number> {
  const deadline = performance.now() + PORT_MS
  for (;;) {
    try {
      return await relay.listen(port)
    } catch (error) {
      const isTaken = (error as NodeJS.ErrnoException).code === 'EADDRINUSE'
      if (!isTaken || port === 0) throw error
      if (performance.now() > deadline) return relay.listen(0)
      await new Promise(resolve => setTimeout(resolve, PORT_PAUSE_MS))
    }
  }
}
