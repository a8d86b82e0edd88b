import type { EndpointId } from '../../src/core/ids.ts'
import type { Life } from '../life.ts'
import type { Network, Reply } from '../network.ts'
import { API_KEY } from '../server.ts'

const TIMEOUT_MS = 100_000

/** What a request may carry. */
export interface Asking {
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly timeoutMs?: number
  readonly onPart?: (text: string, mark: number) => void
}

/** The public operations of endpoints, as one client calls them. */
export class Calls {
  readonly #network: Network
  readonly #who: string
  readonly #life: Life

  constructor(network: Network, who: string, life: Life) {
    this.#network = network
    this.#who = who
    this.#life = life
  }

  /** Asks for something below `/v2/{endpoint}`. */
  get(endpoint: EndpointId, operation: string, asking: Asking = {}): Promise<Reply> {
    return this.#ask('GET', endpoint, operation, asking)
  }

  /** Changes something below `/v2/{endpoint}`. */
  post(endpoint: EndpointId, operation: string, asking: Asking = {}): Promise<Reply> {
    return this.#ask('POST', endpoint, operation, asking)
  }

  #ask(method: 'GET' | 'POST', endpoint: EndpointId, operation: string, asking: Asking): Promise<Reply> {
    const { headers = {}, timeoutMs = TIMEOUT_MS, ...rest } = asking
    return this.#network.send({
      who: this.#who,
      method,
      url: `http://server.sim/v2/${endpoint}/${operation}`,
      life: this.#life,
      timeoutMs,
      headers: { authorization: `Bearer ${API_KEY}`, 'content-type': 'application/json', ...headers },
      ...rest,
    })
  }
}
