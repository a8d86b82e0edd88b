/**
 * A network of its own for each worker in a cage. In it are a loopback address, on which the worker finds the worker
 * surface of the server where its environment says, and a way to the outside where that is wanted. Nothing of the
 * machine's loopback exists in it.
 */
import type { ChildProcess } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import type { WorkerId } from '../../core/ids.ts'
import { programFile } from '../../disk/package-files.ts'
import type { Clock } from '../../ports/clock.ts'
import type { ServedPorts } from '../base/served-ports.ts'
import { type DoorSettings, SERVER_FD } from './door-settings.ts'
import { type LedNetwork, leadOutside, NAME_SERVER } from './outside.ts'

/** Its heap is small, and no thread of it compiles. */
const NODE_OPTIONS = ['--max-old-space-size=64', '--max-semi-space-size=1', '--v8-pool-size=0']
const MAX_READY_BYTES = 32
/** Names that lead to loopback wherever they are asked for. */
const LOOPBACK_NAME = /^(?:127\.0\.0\.1|localhost|.{1,200}\.localhost)$/

/** A worker to start in a network of its own. */
export interface NetworkedWorker {
  readonly worker: WorkerId
  /** Its folder in the data directory, which it does not see. */
  readonly folder: string
  /** The ports that it serves; null when it serves none. */
  readonly ports: ServedPorts | null
  readonly env: Readonly<Record<string, string>>
  /** The command that is started. */
  readonly command: readonly string[]
}

/** The network of one worker, before there is a process in it. */
export interface PreparedNetwork {
  /** The words that start its command in it. */
  readonly words: readonly string[]
  /** Variables of the worker, with addresses that exist in it. */
  readonly env: Readonly<Record<string, string>>
  /** The file with the name servers; null for the machine's. */
  readonly resolver: string | null
  /** Called with the process that {@link words} started; null where nothing has to be done. */
  readonly attach: ((child: ChildProcess) => void) | null
}

/** Makes networks of workers. */
export class OwnNetwork {
  readonly #options

  constructor(options: {
    readonly bwrap: string
    /** The Node that holds it. */
    readonly nodePath: string
    /** The socket of the worker surface. */
    readonly socket: string
    /** The socket of what functions of apps call. */
    readonly functionSocket: string
    /** True where it leads to the outside. */
    readonly open: boolean
    readonly clock: Clock
  }) {
    this.#options = options
  }

  /** True where it leads to the outside. */
  get isOpen(): boolean {
    return this.#options.open
  }

  /** Prepares the start of a worker in a network of its own. */
  prepare({ worker, folder, ports, env, command }: NetworkedWorker): PreparedNetwork {
    const { bwrap, nodePath, socket, functionSocket, open, clock } = this.#options
    const { surface, env: redirectedEnv } = redirectCalls(env)
    const functionPorts = loopbackPorts(env)
    const served = ports === null ? [] : [...new Set([ports.port, ports.healthPort])]
    const control = open ? join(folder, 'network') : null
    const settings: DoorSettings = {
      surface,
      socket,
      control,
      functions: functionPorts.length === 0 ? null : { ports: functionPorts, socket: functionSocket },
      serves: served.map(port => ({ port, path: servedSocket(folder, port) })),
    }
    const door = [nodePath, ...NODE_OPTIONS, programFile('drivers/cage/door'), JSON.stringify(settings)]
    const resolver = open ? writeResolver(folder) : null
    return {
      words: [bwrap, ...OUTER, '--', ...door, ...command],
      env: redirectedEnv,
      resolver,
      attach: control === null ? null : child => void attach(child, { worker, control }, clock),
    }
  }
}

/** The socket that leads to a port of a worker with a network of its own. */
export function servedSocket(folder: string, port: number): string {
  return join(folder, `port-${port}`)
}

/**
 * The outer namespaces: the network, and the user namespace that owns it, in which the worker is not. The file system
 * is the machine's. slirp4netns wants a user root there, which is the user of the server; the cage maps it back, for
 * which it needs the capability.
 */
const OUTER: readonly string[] = [
  ...['--unshare-user', '--unshare-net', '--uid', '0', '--gid', '0', '--cap-drop', 'ALL', '--cap-add', 'CAP_SETFCAP'],
  ...['--dev-bind', '/', '/'],
]

/** The words that make such namespaces for a command, for trials. */
export function outerWords(bwrap: string): string[] {
  return [bwrap, ...OUTER, '--']
}

/** The address for a worker's calls, which becomes one of loopback: its network has no other one. */
function redirectCalls(
  env: Readonly<Record<string, string>>,
): Pick<DoorSettings, 'surface'> & Pick<PreparedNetwork, 'env'> {
  const url = URL.parse(env.RUNPOD_WEBHOOK_GET_JOB ?? '')
  if (url === null) return { surface: null, env }
  const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80))
  const host = '127.0.0.1'
  const [serverUrl, loopbackUrl] = [`${url.origin}/`, `http://${host}:${port}/`]
  if (serverUrl === loopbackUrl) return { surface: { host, port }, env }
  const entries = Object.entries(env).map(([name, value]) => [
    name,
    value.startsWith(serverUrl) ? `${loopbackUrl}${value.slice(serverUrl.length)}` : name === 'NO_PROXY' ? host : value,
  ])
  return { surface: { host, port }, env: Object.fromEntries(entries) }
}

/**
 * The ports of this machine at which a function of an app finds the server. One at another name is outside: it is
 * reached where that is.
 */
function loopbackPorts({ RUNPOD_API_BASE_URL: api, RUNPOD_ENDPOINT_BASE_URL: jobs }: PreparedNetwork['env']): number[] {
  const ports = [api, jobs].flatMap(text => {
    const url = URL.parse(text ?? '')
    if (url === null || !LOOPBACK_NAME.test(url.hostname)) return []
    return [Number(url.port || (url.protocol === 'https:' ? 443 : 80))]
  })
  return [...new Set(ports)]
}

function writeResolver(folder: string): string {
  const path = join(folder, 'resolv.conf')
  const hostLines = existsSync('/etc/resolv.conf') ? readFileSync('/etc/resolv.conf', 'utf8').split('\n') : []
  const lines = hostLines.filter(line => /^(?:search|options|domain)\s/.test(line))
  writeFileSync(path, [`nameserver ${NAME_SERVER}`, ...lines, ''].join('\n'), { mode: 0o644 })
  return path
}

/** The worker waits for one line. Where this server ends before, the worker ends too. */
async function attach(child: ChildProcess, network: Omit<LedNetwork, 'pid'>, clock: Clock): Promise<void> {
  const line = (child.stdio as readonly unknown[])[SERVER_FD] as Duplex | null | undefined
  if (line === null || line === undefined) return
  line.on('error', () => {})
  let text = ''
  for await (const piece of line.iterator({ destroyOnReturn: false })) {
    text += piece
    if (text.endsWith('\n') || text.length > MAX_READY_BYTES) break
  }
  const pid = /^(\d+)\n$/.exec(text)?.[1]
  if (pid === undefined) {
    line.destroy()
    return
  }
  const reply = await leadOutside({ ...network, pid: Number(pid) }, clock).then(
    () => 'go',
    thrown => (thrown as Error).message.replaceAll('\n', ' '),
  )
  line.end(`${reply}\n`)
}
