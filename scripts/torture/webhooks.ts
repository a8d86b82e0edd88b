/** Receives the webhooks of the torture run. Each end of a job is one delivery, which may take several requests. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Seen } from './clients.ts'

/** Received payloads, by job and delivery. */
export class Receiver {
  readonly #server: Server
  readonly ends = new Map<string, Map<string, Seen>>()

  private constructor() {
    this.#server = createServer((call, answer) => {
      let text = ''
      call.setEncoding('utf8')
      call.on('data', (part: string) => {
        text += part
      })
      call.on('end', () => {
        const told = JSON.parse(text) as Seen & { id: string }
        const deliveries = this.ends.get(told.id) ?? new Map<string, Seen>()
        this.ends.set(told.id, deliveries.set(String(call.headers['webhook-id']), told))
        answer.end()
      })
    })
  }

  /** Starts a receiver on a free port. */
  static async start(): Promise<Receiver> {
    const receiver = new Receiver()
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
