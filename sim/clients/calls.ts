import type { EndpointId } from '../../src/core/ids.ts'
import { API_KEY } from '../app-run.ts'
import type { Life } from '../life.ts'
import type { Network, Reply } from '../network.ts'

const TIMEOUT_MS = 100_000

/** Optional parts of a request. */
export interface CallOptions {
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly timeoutMs?: number
  readonly onPart?: (text: string, mark: number) => void
}

/** The public operations of endpoints for one client. */
export class Calls {
  readonly #network: Network
  readonly #who: string
  readonly #life: Life

  constructor(network: Network, who: string, life: Life) {
    this.#network = network
    this.#who = who
    this.#life = life
  }

  /** Sends GET to `/v2/{endpoint}/{operation}`. */
  get(endpoint: EndpointId, operation: string, options: CallOptions = {}): Promise<Reply> {
    return this.#send('GET', endpoint, operation, options)
  }

  /** Sends POST to `/v2/{endpoint}/{operation}`. */
  post(endpoint: EndpointId, operation: string, options: CallOptions = {}): Promise<Reply> {
    return this.#send('POST', endpoint, operation, options)
  }

  #send(method: 'GET' | 'POST', endpoint: EndpointId, operation: string, options: CallOptions): Promise<Reply> {
    const { headers = {}, timeoutMs = TIMEOUT_MS, ...rest } = options
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
