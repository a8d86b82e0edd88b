/** Receives the webhooks of the torture run. Each end of a job is one delivery, which may take several requests. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Seen } from './clients.ts'

/** Received payloads, by job and delivery. */
export class Receiver {
  readonly #server: Server
  readonly ends = new Map<string, Map<string, Seen>>()
  /** Number of requests, by delivery. */
  readonly requests = new Map<string, number>()

  private constructor(refusesFirst: (delivery: string) => boolean) {
    this.#server = createServer((call, answer) => {
      let text = ''
      call.setEncoding('utf8')
      call.on('data', (part: string) => {
        text += part
      })
      call.on('end', () => {
        const delivery = String(call.headers['webhook-id'])
        const requests = (this.requests.get(delivery) ?? 0) + 1
        this.requests.set(delivery, requests)
        if (requests === 1 && refusesFirst(delivery)) {
          answer.writeHead(500).end()
          return
        }
        const payload = JSON.parse(text) as Seen & { id: string }
        const deliveries = this.ends.get(payload.id) ?? new Map<string, Seen>()
        this.ends.set(payload.id, deliveries.set(delivery, payload))
        answer.end()
      })
    })
  }

  /**
   * Starts a receiver on a free port.
   * @param refusesFirst true if the first request of a delivery gets 500; never by default
   */
  static async start(refusesFirst: (delivery: string) => boolean = () => false): Promise<Receiver> {
    const receiver = new Receiver(refusesFirst)
    await new Promise<void>(resolve => receiver.#server.listen(0, '127.0.0.1', resolve))
    return receiver
  }

  /** The webhook address for jobs. */
  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/ended`
  }

  /** Closes it. */
  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }
}
