import { type BillingTime, billingBounds, bucketsAfter } from '../../core/billing/billing.ts'
import { invalidFields, invalidRequest } from '../../core/errors.ts'
import type { EndpointId, OwnerId } from '../../core/ids.ts'
import { addTokens, NO_TOKENS, type TokenFigures } from '../../core/openai/token-sums.ts'
import type { Ports } from '../../ports/ports.ts'
import type { TokenQuery, TokenSum } from '../../ports/store/usage-store.ts'
import type { TokenCounter } from './token-counter.ts'

/** Tokens of one endpoint, key and model in a bucket. */
export interface TokenRecord extends TokenSum {
  readonly endMs: number
}

/** Tokens of a time: the oldest bucket first, and the sum of all records. */
export interface TokenReport {
  readonly startMs: number
  readonly endMs: number
  readonly records: readonly TokenRecord[]
  readonly totals: TokenFigures
}

/** Reads the sums of tokens. */
export class TokenSums {
  readonly #ports
  readonly #counter

  constructor(ports: Pick<Ports, 'store' | 'clock'>, counter: Pick<TokenCounter, 'flush'>) {
    this.#ports = ports
    this.#counter = counter
  }

  /**
   * Tokens of an owner's requests until now, in buckets of at least a day; those of deleted endpoints and keys
   * included.
   * @throws AppError `invalid` with all problems of the time, or when there would be too many records
   */
  async read(
    owner: OwnerId,
    time: BillingTime,
    filter: Pick<TokenQuery, 'endpointId' | 'keyId'> = {},
  ): Promise<TokenReport> {
    const { sums, bounds } = await this.#sums(owner, time, filter)
    return {
      startMs: bounds[0]!,
      endMs: bounds.at(-1)!,
      records: sums.map(sum => ({ ...sum, endMs: bucketsAfter(sum.startMs, time.size) })),
      totals: sums.reduce((total, { figures }) => addTokens(total, figures), NO_TOKENS),
    }
  }

  /**
   * Tokens of each endpoint in each bucket of a bill, by {@link bucketName}; empty for buckets of an hour, since
   * tokens are summed by the day.
   * @throws AppError as {@link read}
   */
  async ofEndpoints(
    owner: OwnerId,
    time: BillingTime,
    endpointId: EndpointId | null,
  ): Promise<ReadonlyMap<string, TokenFigures>> {
    if (time.size === 'hour') return new Map()
    const { sums } = await this.#sums(owner, time, { endpointId, byEndpoint: true })
    return new Map(sums.map(sum => [bucketName(sum), sum.figures]))
  }

  async #sums(owner: OwnerId, time: BillingTime, filter: Omit<TokenQuery, 'owner' | 'bounds'>) {
    const { store, clock } = this.#ports
    const result = billingBounds(time, clock.now())
    if ('problems' in result) throw invalidFields(result.problems)
    const { bounds } = result
    await this.#counter.flush()
    const { sums, nextMs } = await store.usage.tokens({ owner, bounds, ...filter })
    if (nextMs === null) return { sums, bounds }
    const less = 'ask for less time, larger buckets, one endpoint or one key'
    throw invalidRequest([`this makes more records than one answer can have; ${less}`])
  }
}

/** The name of an endpoint in a bucket of a bill. */
export function bucketName({ startMs, endpointId }: Pick<TokenSum, 'startMs' | 'endpointId'>): string {
  return `${startMs} ${endpointId}`
}
