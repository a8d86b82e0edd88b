/** Ports of this machine for workers that serve by themselves. */
import { createServer } from 'node:net'
import type { ServedAt, SocketAddress } from '../../core/workers/socket-address.ts'
import { WorkerStartError } from '../../core/workers/start-failure.ts'

/** The ports of one worker; the same twice where its user's are. */
export interface ServedPorts {
  readonly port: number
  readonly healthPort: number
}

/**
 * The range of ports: above those that programs are usually given, below those that the operating system gives to
 * outgoing connections, and below those that Kubernetes catches on its nodes.
 */
export const PORT_RANGE = { first: 20_000, last: 29_999 } as const

const HOST = '127.0.0.1'

/** Finds free ports, and gives none to two workers. */
export class FreePorts {
  readonly #held = new Set<number>()
  #next: number

  /**
   * @param first port at which the first search begins; each search goes on where the last one ended, so that a worker
   *   that just ended is not mistaken for its successor
   */
  constructor(first: number) {
    this.#next = first
  }

  /**
   * Ports for a worker, held until {@link release}. Another program may still be faster than the worker; the worker
   * then ends, and the next one gets others.
   * @param configured as its user named them
   * @throws WorkerStartError when all are in use
   */
  async pick(configured: ServedPorts): Promise<ServedPorts> {
    const port = await this.#one()
    if (configured.port === configured.healthPort) return { port, healthPort: port }
    try {
      return { port, healthPort: await this.#one() }
    } catch (thrown) {
      this.#held.delete(port)
      throw thrown
    }
  }

  /** Holds the ports of a worker of an earlier run. */
  hold({ port, healthPort }: ServedPorts): void {
    this.#held.add(port).add(healthPort)
  }

  /** The worker has ended. */
  release({ port, healthPort }: ServedPorts): void {
    this.#held.delete(port)
    this.#held.delete(healthPort)
  }

  async #one(): Promise<number> {
    const { first, last } = PORT_RANGE
    for (let tries = first; tries <= last; tries += 1) {
      const port = this.#next
      this.#next = port >= last ? first : port + 1
      if (this.#held.has(port)) continue
      // Held before it is tried: another start may check at the same time.
      this.#held.add(port)
      if (await isFree(port)) return port
      this.#held.delete(port)
    }
    throw new WorkerStartError({ kind: 'ports_exhausted', first, last }, { code: 'unavailable' })
  }
}

/**
 * Addresses of a worker with these ports.
 * @param socketOf the socket that leads to a port; none where the port is the machine's
 */
export function servedAt(
  { port, healthPort }: ServedPorts,
  socketOf: (port: number) => string | undefined = () => undefined,
): ServedAt {
  const at = (servedPort: number): SocketAddress => {
    const socket = socketOf(servedPort)
    return { host: HOST, port: servedPort, ...(socket === undefined ? {} : { socket }) }
  }
  return { traffic: at(port), health: at(healthPort) }
}

/** The ports that a handle names; null when it names none. */
export function portsFromHandle(handle: string): ServedPorts | null {
  try {
    const { port, healthPort } = (JSON.parse(handle) as { ports: ServedPorts }).ports
    return isPort(port) && isPort(healthPort) ? { port, healthPort } : null
  } catch {
    return null
  }
}

function isPort(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 && value < 65_536
}

function isFree(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen({ host: HOST, port, exclusive: true }, () => server.close(() => resolve(true)))
  })
}
