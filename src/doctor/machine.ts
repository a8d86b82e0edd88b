/** Checks of this machine that need no server and no engine. */
import { existsSync, readFileSync, statfsSync, statSync } from 'node:fs'
import { get } from 'node:https'
import { createServer } from 'node:net'
import { freemem, totalmem } from 'node:os'
import { dirname, join } from 'node:path'
import type { DataDirFacts, GpuFacts, PortFacts } from '../core/observing/diagnosis.ts'
import { dataDirProblem } from '../disk/access-problem.ts'
import { listOptional } from '../disk/optional-files.ts'
import type { ServerInfo } from '../store/data-dir-lock.ts'
import { systemClock } from '../system/clock.ts'
import { createMachine } from '../system/hardware/machine.ts'
import { portHolder } from '../system/hardware/port-holder.ts'

const ANSWER_MS = 2_000

/** The data directory and its disk. */
export function inspectDataDir(path: string): DataDirFacts {
  const folder = nearestFolder(path)
  const stats = existsSync(path) ? statSync(path) : null
  const kind = stats === null ? 'missing' : stats.isDirectory() ? 'folder' : 'other'
  return {
    path,
    kind,
    refusal: dataDirProblem(path, 'write'),
    mode: stats === null ? null : stats.mode & 0o777,
    freeBytes: readFreeBytes(folder),
  }
}

/** Bytes that this user may still write to the disk of a folder; null if unknown. */
export function readFreeBytes(folder: string): number | null {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize
  } catch {
    return null
  }
}

/** Memory that this process may use, within its control group. */
export function inspectMemory(): { totalBytes: number; freeBytes: number } {
  const limit = process.constrainedMemory()
  const totalBytes = limit > 0 ? Math.min(limit, totalmem()) : totalmem()
  return { totalBytes, freeBytes: Math.min(freemem(), limit > 0 ? process.availableMemory() : freemem()) }
}

/** The check for a running server or, without one, for free addresses. */
export async function inspectPort(dataDir: string, host: string, port: number): Promise<PortFacts> {
  const serverUrl = await runningServer(dataDir)
  const problem = serverUrl === null ? await bindingProblem(host, port) : null
  return { host, port, serverUrl, problem, holder: problem === 'EADDRINUSE' ? portHolder(port) : null }
}

/** GPUs as the server reads them, and drivers as the system shows them. */
export async function inspectGpus(env: Readonly<Record<string, string | undefined>>): Promise<GpuFacts> {
  const machine = createMachine({ clock: systemClock, notifier: { publish: () => {} }, emit: () => {}, env })
  const { gpus, problem } = await machine.parts()
  return {
    nvidia: gpus.filter(({ vendor }) => vendor === 'NVIDIA').map(({ name }) => name),
    problem,
    nvidiaDriver: listOptional('/proc/driver/nvidia/gpus').length > 0,
    amd: existsSync('/dev/kfd'),
    hasCdi: ['/etc/cdi', '/var/run/cdi'].some(folder => listOptional(folder).some(name => /nvidia/i.test(name))),
  }
}

async function runningServer(dataDir: string): Promise<string | null> {
  try {
    const { url, certificate } = JSON.parse(readFileSync(join(dataDir, 'server.json'), 'utf8')) as ServerInfo
    await (certificate === undefined ? requestHealth(url) : requestHealthSecurely(url, certificate))
    return url
  } catch {
    return null
  }
}

async function requestHealth(url: string): Promise<void> {
  const answer = await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(ANSWER_MS) })
  await answer.body?.cancel()
}

/** The server published its certificate, whose names may not include this address. */
function requestHealthSecurely(url: string, certificate: string): Promise<void> {
  const trust = { ca: certificate, allowPartialTrustChain: true, checkServerIdentity: () => undefined }
  return new Promise((resolve, reject) => {
    const options = { ...trust, agent: false, signal: AbortSignal.timeout(ANSWER_MS) }
    get(`${url}/healthz`, options, answer => {
      answer.destroy()
      resolve()
    }).on('error', reject)
  })
}

function bindingProblem(host: string, port: number): Promise<string | null> {
  return new Promise(resolve => {
    const server = createServer()
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    server.listen({ host, port }, () => server.close(() => resolve(null)))
  })
}

/** The folder, or its nearest parent that exists. */
function nearestFolder(path: string): string {
  return existsSync(path) || dirname(path) === path ? path : nearestFolder(dirname(path))
}
