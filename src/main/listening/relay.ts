/** The relay of a term: it keeps calls of workers while the server is away, and has to know their tokens. */
import type { Config } from '../../config/config.ts'
import type { WorkerId } from '../../core/ids.ts'
import { largestResultRead } from '../../core/jobs/result.ts'
import { readBootId } from '../../drivers/base/process-table.ts'
import type { Emit } from '../../events.ts'
import type { Store } from '../../ports/store/store.ts'
import type { ServerTerm } from '../../relay/relay.ts'
import { type RelayNote, type RelaySupervisor, superviseRelay } from '../../relay/relay-supervisor.ts'
import { TokenFeed } from '../../relay/token-feed.ts'
import type { Log } from '../../system/observing/log.ts'

const TROUBLE: ReadonlySet<RelayNote> = new Set(['relay.lost', 'relay.silent', 'relay.hung', 'relay.failed'])
const NO_RELAY = 'workers call the server itself, and results that come while it is away may be lost'

/**
 * Finds or starts the relay. A failure is in the log.
 * @param term null where no other server can act on the database
 */
export async function openRelay(config: Config, term: ServerTerm | null, log: Log): Promise<RelayLink> {
  try {
    const relay = await superviseRelay({
      dataDir: config.dataDir,
      bootId: readBootId(),
      term,
      largestBody: largestResultRead(config.resultBytes),
      note: (event, fields) => log[TROUBLE.has(event) ? 'warn' : 'debug'](fields, event),
    })
    return new RelayLink(relay, log)
  } catch (error) {
    log.warn({ problem: String(error), consequence: NO_RELAY }, 'relay.failed')
    return new RelayLink(null, log)
  }
}

/** The server's connection to its relay. Without a relay, workers call the server itself. */
export class RelayLink {
  readonly #log
  readonly #tokens: TokenFeed | null
  #relay: RelaySupervisor | null

  constructor(relay: RelaySupervisor | null, log: Log) {
    this.#relay = relay
    this.#log = log
    const onError = (error: unknown) => log.warn({ problem: String(error) }, 'relay.untold')
    this.#tokens = relay === null ? null : new TokenFeed(news => relay.sendTokens(news), onError)
  }

  /** Null without a relay, and after a connection that failed. */
  get relay(): RelaySupervisor | null {
    return this.#relay
  }

  /** A reader of events: the relay gets each change of the tokens. */
  readonly emit: Emit = (name, fields) => {
    if (name !== 'worker.created' && name !== 'worker.exited') return
    this.#tokens?.changed((fields as { workerId: WorkerId }).workerId)
  }

  /**
   * Connects the relay to the server, and sends it all tokens. A failure is in the log.
   * @param server the origin at which the server takes calls of workers
   * @param answersLost called with the time in ms since which responses to workers may be lost, each time that
   *   another relay has replaced this one
   */
  async connect(server: string, { workers }: Store, answersLost: (sinceMs: number) => void): Promise<void> {
    const { hostname, port } = new URL(server)
    const address = { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) }
    try {
      await this.#relay?.connect(address, silentMs => {
        void this.#tokens?.restart()
        answersLost(silentMs)
      })
      await this.#tokens?.start({
        listLive: (after, limit) => workers.liveTokens(after, limit),
        listByIds: ids => workers.tokensOf(ids as WorkerId[]),
      })
    } catch (error) {
      this.#log.warn({ problem: String(error), consequence: NO_RELAY }, 'relay.failed')
      await this.leave()
      this.#relay = null
    }
  }

  /** Ends the relay when no worker is left. */
  async end(): Promise<void> {
    this.#tokens?.close()
    await this.#relay?.end()
  }

  /** Leaves the relay to the next server, with the calls that it holds. */
  release(): void {
    this.#tokens?.close()
    this.#relay?.release()
  }

  /** Releases the relay after a start that failed; ends one that this server started. */
  async leave(): Promise<void> {
    this.#tokens?.close()
    await this.#relay?.leave()
  }
}
