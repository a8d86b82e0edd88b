/** What this machine has, seen without a server and without an engine. */
import { execFile } from 'node:child_process'
import { accessSync, constants, existsSync, readdirSync, readFileSync, statfsSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { freemem, totalmem } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import type { DataDirFacts, GpuFacts, PortFacts } from '../core/diagnosis.ts'
import { portHolder } from '../system/port-holder.ts'

const ANSWER_MS = 2_000
const TOOL_MS = 5_000

/** The data directory and its disk. */
export function lookAtDataDir(path: string): DataDirFacts {
  const found = nearest(path)
  const stats = existsSync(path) ? statSync(path) : null
  const kind = stats === null ? 'missing' : stats.isDirectory() ? 'folder' : 'other'
  return {
    path,
    kind,
    writable: isWritable(found),
    mode: stats === null ? null : stats.mode & 0o777,
    freeBytes: freeBytesOf(found),
  }
}

/** How much of the disk of a folder this user may still fill; null where that cannot be seen. */
export function freeBytesOf(folder: string): number | null {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize
  } catch {
    return null
  }
}

/** Memory that this process may use, where a control group limits it too. */
export function lookAtMemory(): { totalBytes: number; freeBytes: number } {
  const limit = process.constrainedMemory()
  const totalBytes = limit > 0 ? Math.min(limit, totalmem()) : totalmem()
  return { totalBytes, freeBytes: Math.min(freemem(), limit > 0 ? process.availableMemory() : freemem()) }
}

/** Whether the server runs, and if not, whether it could listen. */
export async function lookAtPort(dataDir: string, host: string, port: number): Promise<PortFacts> {
  const serverUrl = await runningServer(dataDir)
  const problem = serverUrl === null ? await bindingProblem(host, port) : null
  return { host, port, serverUrl, problem, holder: problem === 'EADDRINUSE' ? portHolder(port) : null }
}

/** Cards and drivers, as the system shows them. */
export async function lookAtGpus(env: Readonly<Record<string, string | undefined>>): Promise<GpuFacts> {
  return {
    nvidia: await nvidiaCards(env),
    nvidiaDriver: namesIn('/proc/driver/nvidia/gpus').length > 0,
    amd: existsSync('/dev/kfd'),
    hasCdi: ['/etc/cdi', '/var/run/cdi'].some(folder => namesIn(folder).some(name => /nvidia/i.test(name))),
  }
}

async function nvidiaCards(env: Readonly<Record<string, string | undefined>>): Promise<string[]> {
  try {
    const argv = ['--query-gpu=name', '--format=csv,noheader']
    const { stdout } = await promisify(execFile)('nvidia-smi', argv, { timeout: TOOL_MS, env: { PATH: env.PATH } })
    return stdout
      .split('\n')
      .map(line => line.trim())
      .filter(line => line !== '')
  } catch {
    return []
  }
}

async function runningServer(dataDir: string): Promise<string | null> {
  try {
    const { url } = JSON.parse(readFileSync(join(dataDir, 'server.json'), 'utf8')) as { url: string }
    const answer = await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(ANSWER_MS) })
    await answer.body?.cancel()
    return url
  } catch {
    return null
  }
}

function bindingProblem(host: string, port: number): Promise<string | null> {
  return new Promise(resolve => {
    const server = createServer()
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    server.listen({ host, port }, () => server.close(() => resolve(null)))
  })
}

/** The folder itself, or the one that it would be made in. */
function nearest(path: string): string {
  return existsSync(path) || dirname(path) === path ? path : nearest(dirname(path))
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK | constants.X_OK)
    return true
  } catch {
    return false
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
