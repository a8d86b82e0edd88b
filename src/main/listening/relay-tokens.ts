/** Where a run of the server keeps its relay informed of its workers. */
import type { WorkerId } from '../../core/ids.ts'
import type { Emit } from '../../events.ts'
import type { Store } from '../../ports/store/store.ts'
import type { RelaySupervisor } from '../../relay/relay-supervisor.ts'
import { TokenFeed } from '../../relay/token-feed.ts'
import type { Log } from '../../system/observing/log.ts'

/** Sends the relay the tokens of workers, and each change of them. */
export class RelayTokens {
  readonly #log: Log
  #feed: TokenFeed | null = null

  constructor(log: Log) {
    this.#log = log
  }

  /** A reader of events. */
  readonly emit: Emit = (name, fields) => {
    if (name !== 'worker.created' && name !== 'worker.exited') return
    this.#feed?.changed((fields as { workerId: WorkerId }).workerId)
  }

  /** Sends all tokens to a relay that the server has just connected to; for a replacement, {@link again}. */
  async begin(relay: RelaySupervisor, { workers }: Store): Promise<void> {
    const feed = new TokenFeed(
      news => relay.sendTokens(news),
      error => this.#log.warn({ problem: String(error) }, 'relay.untold'),
    )
    this.#feed = feed
    await feed.start({
      live: (after, limit) => workers.liveTokens(after, limit),
      of: ids => workers.tokensOf(ids as WorkerId[]),
    })
  }

  /** Another relay has taken the place of the one before. */
  again(): void {
    void this.#feed?.restart()
  }

  /** The relay is about to end, or to be another server's. */
  end(): void {
    this.#feed?.close()
    this.#feed = null
  }
}
