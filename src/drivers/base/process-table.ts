/**
 * The operating system's processes. A pid alone names no process for long, since it is used again; a pid, the time at
 * which its process started and the boot of the machine do. Linux has it in /proc, macOS in `ps`.
 */
import { execFile, execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { platform } from 'node:os'
import { promisify } from 'node:util'
import { readOptional } from '../../disk/optional-files.ts'

/** One process of all times. As JSON it is the handle of a process worker. */
export interface ProcessIdentity {
  readonly pid: number
  /** As the operating system writes it; only good for comparing. */
  readonly startTime: string
  readonly bootId: string
}

/** State of a process, as the operating system shows it. */
export interface ProcessState {
  readonly pid: number
  readonly parent: number
  readonly group: number
  readonly startTime: string
  /** False when it has ended and only waits to be reaped. */
  readonly living: boolean
  /** True for a process that a signal or a debugger has stopped. */
  readonly stopped: boolean
  /**
   * True where its program does nothing as long as SIGSTOP waits for it: it is stopped, has ended, or waits in the
   * kernel for a device.
   */
  readonly resting: boolean
}

const onLinux = platform() === 'linux'
/** Processes that are read side by side. */
const READ_AT_ONCE = 16
const PS_COLUMNS = 'pid=,stat=,ppid=,pgid=,lstart='
const PS_ENV = { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' }
const MAX_PS_BYTES = 16 * 1024 * 1024

/** Names this boot of the machine. */
export function readBootId(): string {
  if (onLinux) return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  return run('/usr/sbin/sysctl', ['-n', 'kern.bootsessionuuid'])?.trim() ?? 'unknown'
}

/** A process by its pid; null when there is none. */
export function readProcess(pid: number): ProcessState | null {
  return onLinux ? readFromProc(pid) : readFromPs(pid)
}

/** Reads a handle; null when it is none. */
export function parseIdentity(text: string): ProcessIdentity | null {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    return null
  }
  const { pid, startTime, bootId } = (parsed ?? {}) as Partial<ProcessIdentity>
  // Signals to the pids 0 and 1 and to negative ones reach others.
  if (typeof pid !== 'number' || !Number.isInteger(pid) || pid < 2) return null
  return typeof startTime === 'string' && typeof bootId === 'string' ? { pid, startTime, bootId } : null
}

/** True while this very process lives. */
export function isAlive(identity: ProcessIdentity, bootId: string): boolean {
  if (identity.bootId !== bootId) return false
  const state = readProcess(identity.pid)
  return state?.living === true && state.startTime === identity.startTime
}

/**
 * The living processes that were started with a variable of this value, and their children that kept it, oldest first.
 * Sees only the same user's processes, and none at all but on Linux.
 */
export async function findByVariable(name: string, value: string): Promise<ProcessState[]> {
  const variable = Buffer.from(`\0${name}=${value}\0`)
  return findWhere(pid => hasVariable(pid, variable))
}

/**
 * The living processes of all users whose files may have this many bytes at most, oldest first. None at all but on
 * Linux.
 */
export function findByFileLimit(bytes: string): Promise<ProcessState[]> {
  return findWhere(async pid => {
    const text = await readFile(`/proc/${pid}/limits`, 'latin1').catch(() => '')
    return hardFileLimit(text) === bytes
  })
}

/**
 * The size in bytes that files of a process may have at most, or `unlimited`; null if unknown.
 * @param limits its file in /proc
 */
export function hardFileLimit(limits: string): string | null {
  const line = limits.split('\n').find(text => text.startsWith('Max file size'))
  return line?.split(/ +/)[4] ?? null
}

async function findWhere(isWanted: (pid: string) => Promise<boolean>): Promise<ProcessState[]> {
  if (!onLinux) return []
  const pids = (await readdir('/proc').catch(() => [])).filter(entry => /^\d+$/.test(entry))
  const states: ProcessState[] = []
  for (let at = 0; at < pids.length; at += READ_AT_ONCE) {
    const batch = pids
      .slice(at, at + READ_AT_ONCE)
      .map(async pid => ((await isWanted(pid)) ? readProcess(Number(pid)) : null))
    for (const state of await Promise.all(batch)) if (state?.living === true) states.push(state)
  }
  return states.sort((a, b) => Number(a.startTime) - Number(b.startTime))
}

/** All processes that can be seen. Takes its time, so that nothing else waits for it. */
export async function listProcesses(): Promise<ProcessState[]> {
  if (!onLinux) return listFromPs()
  const pids = (await readdir('/proc')).filter(entry => /^\d+$/.test(entry))
  const states: (ProcessState | null)[] = []
  for (let at = 0; at < pids.length; at += READ_AT_ONCE) {
    const batch = pids.slice(at, at + READ_AT_ONCE).map(async pid => {
      const text = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => null)
      return text === null ? null : stateFromFields(Number(pid), statFields(text))
    })
    states.push(...(await Promise.all(batch)))
  }
  return states.filter(state => state !== null)
}

/** The living processes of a group, with the names of their programs; none where the system does not show them. */
export function groupMembers(group: number): { readonly pid: number; readonly name: string }[] {
  if (!onLinux) return []
  return readdirSync('/proc').flatMap(entry => {
    const pid = Number(entry)
    if (!/^\d+$/.test(entry)) return []
    const state = readProcess(pid)
    return state?.living === true && state.group === group
      ? [{ pid, name: readOptional(`/proc/${pid}/comm`).trim() }]
      : []
  })
}

/**
 * The variables with which a process of the same user was started; none where that cannot be read, as elsewhere than
 * on Linux.
 */
export async function readVariables(pid: number): Promise<Record<string, string>> {
  const text = onLinux ? await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '') : ''
  const entries = text.split('\0').filter(entry => entry.indexOf('=') > 0)
  return Object.fromEntries(
    entries.map(entry => [entry.slice(0, entry.indexOf('=')), entry.slice(entry.indexOf('=') + 1)]),
  )
}

/**
 * Work of a process: true while it waits for a processor now, and the processor time that it has used, in ticks.
 * Null where the system does not show it.
 */
export function readEffort(pid: number): { readonly runnable: boolean; readonly used: number } | null {
  if (!onLinux) return null
  const fields = readStat(pid)
  if (fields === null) return null
  return { runnable: fields[0] === 'R', used: Number(fields[11]) + Number(fields[12]) }
}

/**
 * Sends a signal to a process, or to the group -pid.
 * @returns false when there is no such process, or it belongs to another user
 */
export function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name)
  } catch {
    return false
  }
}

async function hasVariable(pid: string, variable: Buffer): Promise<boolean> {
  try {
    return Buffer.concat([Buffer.from('\0'), await readFile(`/proc/${pid}/environ`)]).includes(variable)
  } catch {
    return false
  }
}

/**
 * The fields of a process from the third one on: the second is the program's name, and may hold blanks and parentheses
 * itself.
 */
function readStat(pid: number): string[] | null {
  try {
    return statFields(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    return null
  }
}

function statFields(stat: string): string[] {
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}

function readFromProc(pid: number): ProcessState | null {
  const fields = readStat(pid)
  return fields === null ? null : stateFromFields(pid, fields)
}

function stateFromFields(pid: number, fields: readonly string[]): ProcessState | null {
  const [letter, parent, group] = fields
  const startTime = fields[19]
  if (letter === undefined || group === undefined || startTime === undefined) return null
  return { pid, parent: Number(parent), group: Number(group), startTime, ...conditionFromLetter(letter) }
}

/** Meaning of the letter by which the system shows the state of a process. */
function conditionFromLetter(letter: string): Pick<ProcessState, 'living' | 'stopped' | 'resting'> {
  const living = !'ZXx'.includes(letter)
  const stopped = 'Tt'.includes(letter)
  return { living, stopped, resting: !living || stopped || 'DU'.includes(letter) }
}

function readFromPs(pid: number): ProcessState | null {
  return parsePs(run('/bin/ps', ['-o', PS_COLUMNS, '-p', String(pid)]) ?? '')
}

async function listFromPs(): Promise<ProcessState[]> {
  const { stdout } = await promisify(execFile)('/bin/ps', ['-A', '-o', PS_COLUMNS], {
    env: PS_ENV,
    maxBuffer: MAX_PS_BYTES,
  })
  return stdout.split('\n').flatMap(line => parsePs(line) ?? [])
}

/** A line of `ps` with {@link PS_COLUMNS}; null when it is none. */
export function parsePs(line: string): ProcessState | null {
  const [, pid, letter, parent, group, startTime] =
    /^\s*(\d+)\s+(\S)\S*\s+(\d+)\s+(\d+)\s+(\S.*)/.exec(line.trimEnd()) ?? []
  if (letter === undefined || startTime === undefined) return null
  return { pid: Number(pid), parent: Number(parent), group: Number(group), startTime, ...conditionFromLetter(letter) }
}

function run(program: string, words: string[]): string | null {
  try {
    return execFileSync(program, words, { encoding: 'utf8', env: PS_ENV, stdio: ['ignore', 'pipe', 'ignore'] })
  } catch {
    return null
  }
}
