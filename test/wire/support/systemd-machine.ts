/**
 * A systemd that runs: process 1 of a copy of this machine, with processes, mounts and control groups of its own. The
 * network is that of the machine.
 */
import { execFile, spawn, spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { atEnd, atExit, temporaryFolder } from './cleanup.ts'
import { root } from './server.ts'
import { until } from './until.ts'

const BOOT = fileURLToPath(new URL('systemd-machine.sh', import.meta.url))
/** The path of this repository on a machine, which sees no other folder of its owner. */
export const REPOSITORY = '/repository'
const NAMESPACES = ['--pid', '--mount', '--uts', '--ipc', '--cgroup', '--fork', '--kill-child']
const run = promisify(execFile)

/** Reason why no systemd can run here; false if one can. */
export const noSystemdMachine = missing()

function missing(): string | false {
  const canRun =
    process.getuid?.() === 0 &&
    cgroupTree() !== undefined &&
    spawnSync('unshare', [...NAMESPACES, 'test', '-x', '/usr/lib/systemd/systemd']).status === 0
  if (canRun) return false
  const problem = "a systemd of its own needs Debian's package systemd, root, and control groups of version 2"
  if (process.env.RUNYARD_NO_SKIP === '1') throw new Error(problem)
  return problem
}

/** Folder of the tree of version 2. */
function cgroupTree(): string | undefined {
  return /^\S+ (\S+) cgroup2 /m.exec(readFileSync('/proc/mounts', 'utf8'))?.[1]
}

/** Output and exit of a command. */
export interface Ended {
  readonly status: number
  readonly stdout: string
  readonly stderr: string
}

/** A machine with a running systemd. */
export interface SystemdMachine {
  /** Runs a command on it. @throws when it fails */
  run(program: string, ...words: string[]): Promise<string>
  /** Runs a command on it that may fail. */
  attempt(program: string, ...words: string[]): Promise<Ended>
  read(path: string): string
  write(path: string, text: string): void
}

/** Boots one, which ends with the test file. */
export async function bootSystemd(): Promise<SystemdMachine> {
  const folder = temporaryFolder()
  const group = join(cgroupTree()!, `runyard-test-${process.pid}`)
  mkdirSync(group)
  const script = 'echo $$ >"$0/cgroup.procs" && exec unshare "$@"'
  const booting = spawn('sh', ['-c', script, group, ...NAMESPACES, BOOT, folder, root], {
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  const ended = new Promise(resolve => booting.once('exit', resolve))
  // With process 1 everything that it started ends.
  const takeBack = atExit(() => booting.kill('SIGKILL'))
  atEnd(async () => {
    booting.kill('SIGKILL')
    await ended
    takeBack()
    await until('the end of all processes of the machine', () => isRemoved(group))
  })
  const children = `/proc/${booting.pid}/task/${booting.pid}/children`
  const pid = await until('process 1 of the machine', () => readFileSync(children, 'utf8').trim() || null)
  const within = (program: string, words: readonly string[]) =>
    run('nsenter', ['--target', pid, '--mount', '--uts', '--ipc', '--pid', '--cgroup', program, ...words])
  const attempt = (program: string, ...words: string[]) =>
    within(program, words).then(
      ({ stdout, stderr }) => ({ status: 0, stdout, stderr }),
      ({ code, stdout = '', stderr = '' }) => ({ status: Number(code), stdout, stderr }),
    )
  await until('systemd', async () => (await attempt('systemctl', 'is-active', 'machine.target')).status === 0)
  const hostPath = (path: string) => `/proc/${pid}/root${path}`
  return {
    run: async (program, ...words) => (await within(program, words)).stdout.trim(),
    attempt,
    read: path => readFileSync(hostPath(path), 'utf8'),
    write(path, text) {
      mkdirSync(dirname(hostPath(path)), { recursive: true })
      writeFileSync(hostPath(path), text)
    },
  }
}

/** Removes a control group with those below it, which have to be empty. */
function isRemoved(group: string): boolean {
  try {
    for (const { name } of readdirSync(group, { withFileTypes: true }).filter(one => one.isDirectory()))
      if (!isRemoved(join(group, name))) return false
    rmdirSync(group)
    return true
  } catch {
    return false
  }
}
