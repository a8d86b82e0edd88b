/**
 * Leads the network of a worker to the outside, through slirp4netns, which opens connections for it as a program
 * without rights.
 */
import { execFile, execFileSync, spawn } from 'node:child_process'
import { closeSync, openSync, readdirSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { basename, dirname } from 'node:path'
import type { Readable } from 'node:stream'
import type { WorkerId } from '../../core/ids.ts'
import type { Clock } from '../../ports/clock.ts'
import { WORKER_VARIABLE } from '../base/host-environment.ts'
import { closedDestinations, closingCommands } from './closed-destinations.ts'

/** A range that hardly any other network has: that for measuring devices (RFC 2544). */
const RANGE = '198.18.0.0/24'
/** Address of the name server in it. */
export const NAME_SERVER = '198.18.0.3'
/** Programs of the system, some of which are in no PATH but that of root. */
export const SYSTEM_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/run/current-system/sw/bin'
const READY_MS = 20_000
/**
 * Devices that come later have no IPv6, which slirp4netns would not pass on; where the machine has none, there is no
 * such file.
 */
const CLOSE = '(echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6) 2>/dev/null; exec ip -batch -'

/** The network that is led to the outside. */
export interface LedNetwork {
  readonly worker: WorkerId
  /** A process in it, whose user namespace owns it. */
  readonly pid: number
  /** A socket that stays open for as long as the worker lives. */
  readonly control: string
}

/**
 * Connects a network. What the worker must not reach is closed before.
 * @throws Error with the reason
 */
export async function leadOutside({ worker, pid, control }: LedNetwork, clock: Clock): Promise<void> {
  await closeOutside(pid)
  const folder = openSync(dirname(control), 'r')
  const controlSocket = connect(`/proc/self/fd/${folder}/${basename(control)}`)
  try {
    await new Promise<void>((resolve, reject) => controlSocket.once('connect', resolve).once('error', reject))
    await startSlirp({ worker, pid, controlSocket, clock })
  } finally {
    controlSocket.destroy()
    closeSync(folder)
  }
}

/** Closes all destinations of the present time again: addresses and networks of this machine come and go. */
export async function closeOutside(pid: number): Promise<void> {
  const words = ['--target', String(pid), '--user', '--net', '--preserve-credentials', 'sh', '-c', CLOSE]
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const child = execFile('nsenter', words, { env: { PATH: SYSTEM_PATH }, timeout: READY_MS }, (error, _out, output) =>
    error === null
      ? resolve()
      : reject(new Error(`its network cannot be closed: ${firstLine(output) || error.message}`)),
  )
  child.stdin?.on('error', () => {})
  child.stdin?.end(closingCommands(closedNow()))
  await promise
}

interface SlirpStart extends Pick<LedNetwork, 'worker' | 'pid'> {
  /** Its end is that of slirp4netns. */
  readonly controlSocket: Socket
  readonly clock: Clock
}

function startSlirp({ worker, pid, controlSocket, clock }: SlirpStart): Promise<void> {
  const words = ['--configure', '--mtu=65520', '--disable-host-loopback', '--enable-sandbox', '--enable-seccomp']
  const env = { PATH: SYSTEM_PATH, [WORKER_VARIABLE]: worker }
  const fds = [`--cidr=${RANGE}`, '--ready-fd=3', '--exit-fd=4', String(pid), 'tap0']
  const child = spawn('slirp4netns', [...words, ...fds], {
    cwd: '/',
    env,
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe', 'pipe', controlSocket],
  })
  const [errors, ready] = [child.stdio[2], child.stdio[3]] as [Readable, Readable]
  let output = ''
  errors.on('data', (piece: Buffer) => {
    output = `${output}${piece}`.slice(-2_000)
  })
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const fail = (problem: string) => reject(new Error(`its network has no way to the outside: slirp4netns ${problem}`))
  const giveUp = clock.after(READY_MS, () => fail(`is not ready after ${READY_MS / 1000} s`))
  child.once('error', error => fail(`cannot be started: ${error.message}`))
  child.once('exit', code => fail(`ended with ${code}: ${lastLine(output)}`))
  ready.once('data', () => resolve())
  return promise
    .catch(thrown => {
      child.kill('SIGKILL')
      throw thrown
    })
    .finally(() => {
      giveUp()
      // Its later messages are lost: it runs on without this server.
      errors.destroy()
      ready.destroy()
      child.unref()
    })
}

function closedNow(): string[] {
  const routes = (table: string) =>
    execFileSync('ip', ['-4', 'route', 'show', 'table', table], { encoding: 'utf8', env: { PATH: SYSTEM_PATH } })
  return closedDestinations(routes('local'), routes('main'), isOwnBridge)
}

/** A bridge to which no card of the machine belongs. */
function isOwnBridge(device: string): boolean {
  const entries = (path: string) => {
    try {
      return readdirSync(path)
    } catch {
      return null
    }
  }
  const ports = entries(`/sys/class/net/${device}/brif`)
  return ports?.every(port => entries(`/sys/class/net/${port}/device`) === null) === true
}

function firstLine(text: string): string {
  return text.trim().split('\n')[0]?.slice(0, 200) ?? ''
}

function lastLine(text: string): string {
  return text.trim().split('\n').at(-1)?.slice(0, 200) ?? ''
}
