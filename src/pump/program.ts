/**
 * The program of the pump: `program.ts <its folder> <folder of the outputs>`. It says in its folder who it is, and ends when another says so,
 * when the folder is gone, or after a minute without a pipe.
 */
import { watch } from 'node:fs'
import { readBootId, readProcess } from '../drivers/base/process-table.ts'
import { Pump } from './pump.ts'
import { pipesFolder, readPump, writePump } from './pump-file.ts'

/** Pause between looks for pipes where the system does not say that there is a new one. */
const LOOK_MS = 250
const IDLE_MS = 60_000

const [folder = '', logs = ''] = process.argv.slice(2)
const identity = { pid: process.pid, startTime: readProcess(process.pid)?.startTime ?? '', bootId: readBootId() }
const pump = new Pump({
  pipes: pipesFolder(folder),
  logs,
  clock: { monotonic: () => performance.now(), after: (ms, callback) => setTimeout(callback, ms) },
})
let isKnown = tellWho()
let neededAtMs = performance.now()

const watcher = watch(pipesFolder(folder), look)
// The system may watch no more folders: then the interval has to do.
watcher.on('error', () => watcher.close())
setInterval(look, LOOK_MS)
look()

// Service managers signal every process of a service at once, while workers may have more to print.
for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(name, () => pump.idle && process.exit(0))

function look(): void {
  if (!isKnown) isKnown = tellWho()
  else if (readPump(folder)?.pid !== identity.pid) process.exit(0)
  pump.look()
  if (!pump.idle) neededAtMs = performance.now()
  if (performance.now() - neededAtMs > IDLE_MS) process.exit(0)
}

/** A full disk is no reason not to read: the file follows when there is room. */
function tellWho(): boolean {
  try {
    writePump(folder, identity)
    return true
  } catch (error) {
    console.error(String(error))
    return false
  }
}
