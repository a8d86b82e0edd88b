/**
 * Program of the pump: `program.ts <its folder> <folder of the outputs>`. It writes its identity into its folder, and
 * ends when another pump writes its own, when the folder is removed, or after a minute without a pipe.
 */
import { watch } from 'node:fs'
import { readBootId, readProcess } from '../drivers/base/process-table.ts'
import { Pump } from './pump.ts'
import { pipesFolder, readPump, writePump } from './pump-file.ts'

/** Pause between looks for pipes on a system that does not report new ones. */
const LOOK_MS = 250
const IDLE_MS = 60_000

const [folder = '', logs = ''] = process.argv.slice(2)
const identity = { pid: process.pid, startTime: readProcess(process.pid)?.startTime ?? '', bootId: readBootId() }
const pump = new Pump({
  pipes: pipesFolder(folder),
  logs,
  clock: { monotonic: () => performance.now(), after: (ms, callback) => setTimeout(callback, ms) },
})
let isRegistered = register()
let neededAtMs = performance.now()

const watcher = watch(pipesFolder(folder), look)
// The system may refuse to watch more folders: the interval remains.
watcher.on('error', () => watcher.close())
setInterval(look, LOOK_MS)
look()

// Service managers signal each process of a service at once, while workers may have more to print.
for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(name, () => pump.idle && process.exit(0))

function look(): void {
  if (!isRegistered) isRegistered = register()
  else if (readPump(folder)?.pid !== identity.pid) process.exit(0)
  pump.look()
  if (!pump.idle) neededAtMs = performance.now()
  if (performance.now() - neededAtMs > IDLE_MS) process.exit(0)
}

/** A full disk does not stop the reads: the file is written once the disk has room. */
function register(): boolean {
  try {
    writePump(folder, identity)
    return true
  } catch (error) {
    console.error(String(error))
    return false
  }
}
