/** The programs of Kubernetes, built once for a machine with Go from the modules of `programs/go.mod`. */
import { execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** The version of Kubernetes, as `programs/go.mod` requires it. */
export const KUBERNETES_VERSION = '1.34.4'

const SOURCES = join(import.meta.dirname, 'programs')
const NAMES = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kubelet', 'kubectl']
const VERSION_PACKAGE = 'k8s.io/component-base/version'

/** Folder of the programs, unless `RUNYARD_TEST_KUBERNETES` names one. */
export function usualFolder(): string {
  return join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'runyard-test', 'kubernetes')
}

/** True if a folder has all programs, built from these sources. */
export function hasPrograms(folder: string): boolean {
  const stamp = join(folder, 'stamp')
  return existsSync(stamp) && readFileSync(stamp, 'utf8') === sourcesStamp()
}

/**
 * Builds the programs into a folder that does not have them: six minutes on two processors, with an empty cache of
 * Go. If another process builds them, it waits for that.
 */
export async function buildPrograms(folder: string): Promise<void> {
  mkdirSync(dirname(folder), { recursive: true })
  const lock = `${folder}.builder`
  while (!hasPrograms(folder)) {
    if (isTaken(lock)) await sleep(500)
    else await build(folder, lock)
  }
}

/** True if a living process builds. If none does, this process gets the lock. */
function isTaken(lock: string): boolean {
  try {
    writeFileSync(lock, String(process.pid), { flag: 'wx' })
    return false
  } catch {
    const builder = existsSync(lock) ? readFileSync(lock, 'utf8') : ''
    // Between its creation and its content a lock is empty.
    if (builder !== '' && !existsSync(`/proc/${builder}`)) rmSync(lock, { force: true })
    return true
  }
}

async function build(folder: string, lock: string): Promise<void> {
  const unfinished = `${folder}.${process.pid}`
  const [major, minor] = KUBERNETES_VERSION.split('.')
  const version = Object.entries({ gitVersion: `v${KUBERNETES_VERSION}`, gitMajor: major, gitMinor: minor })
  const flags = ['-s', '-w', ...version.map(([name, value]) => `-X ${VERSION_PACKAGE}.${name}=${value}`)]
  try {
    checkGo()
    mkdirSync(unfinished)
    await go([
      'build',
      `-ldflags=${flags.join(' ')}`,
      '-o',
      `${unfinished}/`,
      ...NAMES.map(name => `k8s.io/kubernetes/cmd/${name}`),
    ])
    // It runs in an image without any libraries.
    await go(['build', '-o', join(unfinished, 'pause'), './pause'], { CGO_ENABLED: '0' })
    writeFileSync(join(unfinished, 'stamp'), sourcesStamp())
    rmSync(folder, { recursive: true, force: true })
    renameSync(unfinished, folder)
  } finally {
    rmSync(unfinished, { recursive: true, force: true })
    rmSync(lock, { force: true })
  }
}

function sourcesStamp(): string {
  const hash = createHash('sha256')
  for (const file of ['go.mod', 'go.sum', 'programs.go', 'pause/main.go'])
    hash.update(readFileSync(join(SOURCES, file)))
  return `${KUBERNETES_VERSION} ${hash.digest('hex')}\n`
}

function checkGo(): void {
  let printed: string
  try {
    printed = execFileSync('go', ['version'], { encoding: 'utf8' })
  } catch {
    throw new Error('Kubernetes is built with Go 1.24 or later, and the program "go" does not exist')
  }
  const [, minor] = /go1\.(\d+)/.exec(printed) ?? []
  if (Number(minor) < 24) throw new Error(`Kubernetes is built with Go 1.24 or later, not with ${printed.trim()}`)
}

async function go(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<void> {
  const child = spawn('go', args, { cwd: SOURCES, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  let printed = ''
  child.stdout.on('data', block => (printed += block))
  child.stderr.on('data', block => (printed += block))
  const code = await new Promise<number | null>((resolve, reject) => child.on('error', reject).on('close', resolve))
  if (code !== 0) throw new Error(`go ${args[0]} ended with ${code}: ${printed.slice(-4000)}`)
}
