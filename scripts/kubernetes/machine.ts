/**
 * A machine for a cluster: namespaces for processes, mounts and the network, so that nothing of it is visible
 * outside, and all of it ends with the process that made it, even if that is killed. Only empty control groups and
 * files stay, which {@link removeRemains} removes.
 */
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { shellWord } from '../../src/core/shell-word.ts'

const execute = promisify(execFile)

/**
 * Settings of the kernel that a kubelet changes. Files of the machine are mounted over them, so
 * that it changes the files.
 */
const KERNEL_SETTINGS = [
  'vm/overcommit_memory',
  'kernel/panic',
  'kernel/panic_on_oops',
  'kernel/keys/root_maxkeys',
  'kernel/keys/root_maxbytes',
]
/** Folders in which programs of the cluster store files at fixed places. */
const OWN_FOLDERS = ['/run', '/var/lib', '/var/log']
const CONTROL_GROUPS = '/sys/fs/cgroup'
/** Second byte of the addresses between this host and its machines, and of the pods of each. */
const [LINKS, PODS] = ['10.214', '10.215']

/** The addresses of a machine. */
export interface MachineAddresses {
  /** This host, as the machine and its pods see it. */
  readonly host: string
  /** The machine, as this host sees it. */
  readonly machine: string
  /** First three bytes of the addresses of its pods. */
  readonly pods: string
}

/** A running machine. */
export interface Machine {
  readonly folder: string
  readonly addresses: MachineAddresses
  /** Path of its control groups below the root of each hierarchy. */
  readonly controlGroup: string
  /** Runs shell commands to their end. @returns their output @throws if the last one fails */
  run(commands: string): Promise<string>
  /** Starts a program in the background, whose output goes to `log/<name>.log`. */
  start(name: string, words: readonly string[]): Promise<void>
  /** Sends a signal to a started program. */
  signal(name: string, signal: NodeJS.Signals): Promise<void>
  /** Kills a started program, and waits until it has ended. */
  kill(name: string): Promise<void>
  /** The last lines of a program's output. */
  output(name: string): string
  /** Ends everything on the machine and removes its folder. */
  close(): Promise<void>
}

/** Number of machines that this process made. */
let opened = 0

/** Makes a machine whose files are in an empty folder. */
export async function openMachine(folder: string): Promise<Machine> {
  for (const part of ['log', 'pid', 'kernel', 'cni']) mkdirSync(join(folder, part), { recursive: true })
  opened += 1
  const controlGroup = `runyard-kubernetes-${process.pid}-${opened}`
  const { child, run, ended } = openShell()
  const close = async () => {
    child.stdin?.end()
    await ended
    removeControlGroups(controlGroup)
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 })
  }
  let addresses: MachineAddresses
  try {
    await run('true')
    addresses = await connect(firstChild(child.pid!))
    await run(preparation(folder, addresses))
  } catch (error) {
    await close()
    throw error
  }
  makeControlGroups(controlGroup)
  writeFileSync(join(folder, 'machine.json'), JSON.stringify({ controlGroup, owner: process.pid }))
  const log = (program: string) => join(folder, 'log', `${program}.log`)
  const pidFile = (program: string) => join(folder, 'pid', program)
  return {
    folder,
    addresses,
    controlGroup: `/${controlGroup}`,
    run,
    async start(program, words) {
      const command = words.map(shellWord).join(' ')
      await run(
        `cd ${shellWord(folder)}; setsid ${command} >>${shellWord(log(program))} 2>&1 </dev/null & echo $! >${shellWord(pidFile(program))}`,
      )
    },
    async signal(program, signal) {
      await run(`kill -${signal.replace('SIG', '')} "$(cat ${shellWord(pidFile(program))})"`)
    },
    async kill(program) {
      await run(
        `pid=$(cat ${shellWord(pidFile(program))}); kill -KILL "$pid" 2>/dev/null; wait "$pid" 2>/dev/null; true`,
      )
    },
    output: program =>
      existsSync(log(program)) ? readFileSync(log(program), 'utf8').split('\n').slice(-30).join('\n') : '',
    close,
  }
}

/**
 * Removes the remains of machines whose process was killed: folders of this kind without an
 * owner, and their control groups.
 */
export function removeRemains(parent: string, prefix: string): void {
  for (const name of readdirSync(parent).filter(name => name.startsWith(prefix))) {
    const folder = join(parent, name)
    const file = join(folder, 'machine.json')
    if (!existsSync(file)) continue
    const machine = JSON.parse(readFileSync(file, 'utf8')) as { readonly controlGroup: string; readonly owner: number }
    if (existsSync(`/proc/${machine.owner}`)) continue
    removeControlGroups(machine.controlGroup)
    rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * Starts the first process of the machine: a shell that runs the commands on its input. When its input ends, since
 * this process has ended, it ends too, and the kernel ends all other processes of the machine with it.
 */
function openShell(): { child: ChildProcess; run: Machine['run']; ended: Promise<void> } {
  const spaces = ['--pid', '--fork', '--kill-child=SIGKILL', '--mount-proc', '--mount', '--net', '--uts', '--ipc']
  const child = spawn('unshare', [...spaces, 'bash', '--norc'], { stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = new Promise<void>(resolve => child.on('close', () => resolve()))
  child.on('error', () => {})
  child.stdin.on('error', () => {})
  let printed = ''
  let look = () => {}
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed += text
    look()
  })
  let count = 0
  let last: Promise<unknown> = Promise.resolve()
  const send = async (commands: string) => {
    count += 1
    const mark = `== ${count} ended with`
    printed = ''
    const answer = Promise.withResolvers<string>()
    look = () => {
      if (new RegExp(`${mark} \\d+\n`).test(printed)) answer.resolve(printed)
    }
    child.stdin.write(`{ ${commands}\n} </dev/null 2>&1; echo "${mark} $?"\n`)
    const text = await Promise.race([answer.promise, ended.then(() => printed)])
    const at = text.indexOf(mark)
    const output = at === -1 ? text : text.slice(0, at)
    if (!text.slice(at).startsWith(`${mark} 0\n`))
      throw new Error(`on the machine of a cluster: ${output.trim() || 'it has ended'}`)
    return output
  }
  const run = (commands: string) => {
    const result = last.then(() => send(commands))
    last = result.catch(() => {})
    return result
  }
  return { child, run, ended }
}

/** Commands that prepare the machine before any program runs. */
function preparation(folder: string, { machine, pods }: MachineAddresses): string {
  const settings = KERNEL_SETTINGS.map(setting => {
    const file = shellWord(join(folder, 'kernel', setting.replaceAll('/', '.')))
    return `cat /proc/sys/${setting} >${file} && mount --bind ${file} /proc/sys/${setting}`
  })
  return [
    'set -e',
    'mount --make-rprivate /',
    ...OWN_FOLDERS.filter(path => !folder.startsWith(`${path}/`)).map(path => `mount -t tmpfs none ${path}`),
    'mkdir -p /run/lock /var/log/containers',
    ...settings,
    'ip link set lo up',
    `ip addr add ${machine}/24 dev eth0`,
    'ip link set eth0 up',
    'ip link add pods type bridge',
    `ip addr add ${pods}.1/24 dev pods`,
    'ip link set pods up',
    'echo 1 >/proc/sys/net/ipv4/ip_forward',
    'set +e',
  ].join('\n')
}

/** Connects the network of a process with this host, at unused addresses, which the name of the link claims. */
async function connect(pid: number): Promise<MachineAddresses> {
  for (let number = 1; number <= 250; number += 1) {
    const name = `runyard-k${number}`
    const addresses = { host: `${LINKS}.${number}.1`, machine: `${LINKS}.${number}.2`, pods: `${PODS}.${number}` }
    if (await isUsed(`${LINKS}.${number}.0/24`, `${PODS}.${number}.0/24`)) continue
    try {
      await execute('ip', ['link', 'add', name, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', String(pid)])
    } catch (error) {
      if (/File exists/.test(String(error))) continue
      throw error
    }
    await execute('ip', ['addr', 'add', `${addresses.host}/24`, 'dev', name])
    await execute('ip', ['link', 'set', name, 'up'])
    await execute('ip', ['route', 'add', `${addresses.pods}.0/24`, 'via', addresses.machine])
    return addresses
  }
  throw new Error(`all addresses for clusters in ${LINKS}.0.0/16 are used`)
}

async function isUsed(...subnets: readonly string[]): Promise<boolean> {
  const { stdout } = await execute('ip', ['-4', 'route', 'show', 'table', 'all'])
  return subnets.some(subnet => stdout.includes(subnet))
}

/** Pid of the first process of the machine on this host. */
function firstChild(pid: number): number {
  const [child] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')
  return Number(child)
}

/** The roots of the hierarchies of control groups: one, or with version 1 one for each controller. */
function hierarchies(): string[] {
  if (existsSync(join(CONTROL_GROUPS, 'cgroup.controllers'))) return [CONTROL_GROUPS]
  const mounts = readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .map(mount => mount.split(' '))
  return mounts.filter(([, , type]) => type?.startsWith('cgroup')).map(([, path]) => path!)
}

function makeControlGroups(name: string): void {
  for (const path of hierarchies()) mkdirSync(join(path, name), { recursive: true })
}

function removeControlGroups(name: string): void {
  for (const path of hierarchies()) removeControlGroup(join(path, name))
}

function removeControlGroup(path: string): void {
  if (!existsSync(path)) return
  for (const entry of readdirSync(path, { withFileTypes: true }))
    if (entry.isDirectory()) removeControlGroup(join(path, entry.name))
  try {
    rmdirSync(path)
  } catch {
    // A process that was just killed may still be in it; the next cluster tries again.
  }
}

/** True if this user may make machines: only root, and only if the kernel permits it. */
export function canMakeMachines(): boolean {
  try {
    execFileSync('unshare', ['--pid', '--fork', '--mount', '--net', 'true'], { stdio: 'ignore' })
    return process.getuid?.() === 0
  } catch {
    return false
  }
}
