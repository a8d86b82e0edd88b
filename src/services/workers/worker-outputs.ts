import { maxLogBytes } from '../../core/accounts/quotas.ts'
import type { OwnerId, WorkerId } from '../../core/ids.ts'
import { type KeptOutput, outputsToShrink } from '../../core/workers/output-share.ts'
import type { Worker } from '../../core/workers/worker.ts'
import type { Ports } from '../../ports/ports.ts'
import type { RecordedWorker } from '../../ports/store/store.ts'
import type { Quotas } from '../accounts/quotas.ts'

/** Interval between looks at all outputs, and time for which that of an ended worker may still grow. */
const ALL_MS = 60_000
/** Workers of one read. */
const PART = 1_000

/** The outputs of one account, and the sum of their bytes. */
interface AccountOutputs {
  readonly outputs: Map<WorkerId, KeptOutput>
  bytes: number
}

/**
 * Keeps the outputs of workers on the disk within the limits of their accounts, and removes those of workers without
 * a record. Looks often at the outputs that may grow, and seldom at those of workers that ended: of these there may
 * be thousands.
 */
export class WorkerOutputs {
  readonly #ports
  readonly #quotas
  /** As of the last look at each. */
  readonly #accounts = new Map<OwnerId, AccountOutputs>()
  /** Time of the next look at all. */
  #allAtMs = 0
  /** True if some outputs may belong to no record, which the next look at all finds out. */
  #isUnsure = true
  /** True if the last removal of records failed. */
  #fails = false
  /** True if the last look found no output that may grow. */
  #isStill = false

  constructor(ports: Pick<Ports, 'store' | 'logs'>, quotas: Pick<Quotas, 'effectiveLimits' | 'noteLogs'>) {
    this.#ports = ports
    this.#quotas = quotas
  }

  /** True if nothing changes as long as no worker runs. */
  get isSettled(): boolean {
    return this.#isStill && !this.#isUnsure
  }

  /**
   * Looks at the outputs that may have grown, and shrinks those of accounts that are over their limit.
   * @param alive workers that have not ended
   * @throws AppError `unavailable`
   */
  async step(alive: readonly Pick<Worker, 'id' | 'owner'>[], nowMs: number): Promise<void> {
    // After the clock was set back, that time is too late.
    if (nowMs >= this.#allAtMs || nowMs < this.#allAtMs - ALL_MS) await this.#lookAtAll(nowMs)
    else await this.#lookAtGrowing(alive, nowMs)
    await this.#shrink()
  }

  /**
   * Removes records of workers, and their outputs at once.
   * @param remove removes the records; after a failure, the next look at all finds out which ones
   */
  async removing(remove: () => Promise<readonly WorkerId[]>): Promise<readonly WorkerId[]> {
    const ids = await remove().catch(error => {
      // Once at first: a store that fails may do so for hours.
      if (!this.#fails) this.#allAtMs = 0
      this.#fails = true
      this.#isUnsure = true
      throw error
    })
    if (this.#isUnsure) this.#allAtMs = 0
    this.#fails = false
    await this.#ports.logs.shrink(new Map(ids.map(id => [id, 0])))
    for (const id of ids) this.#forget(id)
    return ids
  }

  async #lookAtAll(nowMs: number): Promise<void> {
    const known: RecordedWorker[] = []
    for (let after: string | null = ''; after !== null; ) {
      const part: RecordedWorker[] = await this.#ports.store.workers.known(after, PART)
      for (const worker of part) known.push(worker)
      after = part.length < PART ? null : part.at(-1)!.id
    }
    const bytes = await this.#ports.logs.trim(new Set(known.map(({ id }) => id)))
    this.#accounts.clear()
    for (const worker of known) this.#set({ ...worker, bytes: bytes.get(worker.id) ?? 0 })
    this.#allAtMs = nowMs + ALL_MS
    this.#isUnsure = false
    this.#isStill = false
  }

  async #lookAtGrowing(alive: readonly Pick<Worker, 'id' | 'owner'>[], nowMs: number): Promise<void> {
    const ended = await this.#ports.store.workers.endedSince(nowMs - ALL_MS)
    const growing = [...ended, ...alive.map(({ id, owner }) => ({ id, owner, exitedAtMs: null }))]
    const bytes = await this.#ports.logs.measure(growing.map(({ id }) => id))
    for (const worker of growing) this.#set({ ...worker, bytes: bytes.get(worker.id) ?? 0 })
    this.#isStill = growing.length === 0
  }

  async #shrink(): Promise<void> {
    for (const [owner, { outputs, bytes }] of this.#accounts) {
      const most = maxLogBytes(this.#quotas.effectiveLimits(owner))
      if (most === null || bytes <= most) continue
      const shrunk = outputsToShrink([...outputs.values()], () => most)
      await this.#ports.logs.shrink(shrunk)
      for (const [id, limit] of shrunk) {
        const output = outputs.get(id)!
        this.#set({ ...output, bytes: Math.min(output.bytes, limit) })
      }
    }
    this.#quotas.noteLogs(new Map([...this.#accounts].map(([owner, { bytes }]) => [owner, bytes])))
  }

  #set(output: KeptOutput): void {
    const account = this.#accounts.get(output.owner) ?? { outputs: new Map(), bytes: 0 }
    this.#accounts.set(output.owner, account)
    account.bytes += output.bytes - (account.outputs.get(output.id)?.bytes ?? 0)
    account.outputs.set(output.id, output)
  }

  #forget(id: WorkerId): void {
    for (const [owner, account] of this.#accounts) {
      account.bytes -= account.outputs.get(id)?.bytes ?? 0
      account.outputs.delete(id)
      if (account.outputs.size === 0) this.#accounts.delete(owner)
    }
  }
}
