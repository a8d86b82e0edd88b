import {
  type AccountLimits,
  addHeld,
  buildsProblem,
  type GivenLimits,
  type HeldJobs,
  heldProblem,
  limitsFor,
  NO_LIMITS,
  NOTHING_HELD,
  type ObjectCounts,
  type ObjectKind,
  objectProblem,
  secretsProblem,
  workersMinProblem,
} from '../../core/accounts/quotas.ts'
import type { JobUsage } from '../../core/billing/usage.ts'
import type { AppError } from '../../core/errors.ts'
import type { EndpointId, OwnerId, SecretId } from '../../core/ids.ts'
import type { Submission } from '../../core/jobs/submission.ts'
import type { PagePosition } from '../../core/pages.ts'
import { fractionOfGpus } from '../../core/workers/placement.ts'
import type { Ports } from '../../ports/ports.ts'

/** Number of jobs of one read of the store; other work runs between the reads. */
const PART = 1_000
/** Shortest time between two readings of an account's use; ten times the duration of a reading, if that is longer. */
const AGAIN_MS = 1_000
const REST = 10

/** An account's limits and use. */
export interface QuotaUse {
  readonly limits: AccountLimits
  readonly objects: ObjectCounts
  readonly held: HeldJobs
  /** Bytes of its secrets as they are stored. */
  readonly secretBytes: number
  /** Bytes of the archives of its apps. */
  readonly buildBytes: number
  /** Bytes of output of its workers on the disk at the last measurement. */
  readonly logBytes: number
  readonly workers: number
  readonly gpus: number
}

/** Use of an account. Except for retries it is never below the true use, since only the next reading notices ends. */
interface Ledger {
  held: HeldJobs
  /** Bytes of large texts that no job has yet, which no reading finds. */
  receivedBytes: number
  /** Earliest time of the next reading, of the monotonic clock. */
  readAgainMs: number
  /** False until the use from before this start is known. */
  isRead: boolean
  reading: Promise<void> | null
}

/**
 * Keeps accounts within their limits. A submit adds to a figure in memory and reads nothing; only where that figure
 * would pass a limit, and at the first submit after a start, the store is read in parts. So nothing has to be counted
 * when jobs end or expire.
 */
export class Quotas {
  readonly #ports
  readonly #defaults
  readonly #ownLimits = new Map<OwnerId, GivenLimits>()
  readonly #ledgers = new Map<OwnerId, Ledger>()
  readonly #turns = new Map<OwnerId, Promise<unknown>>()
  #logBytes: ReadonlyMap<OwnerId, number> = new Map()

  /** @param defaults limits of accounts other than the operator's */
  constructor(ports: Ports, defaults: AccountLimits) {
    this.#ports = ports
    this.#defaults = defaults
  }

  /** Reads the limits that were set for accounts; the server does so at each start. */
  async readLimits(): Promise<void> {
    for (const { id, limits } of await this.#ports.store.accounts.list()) this.setLimits(id, limits)
  }

  /** Sets the account's own limits. */
  setLimits(owner: OwnerId, limits: GivenLimits): void {
    this.#ownLimits.set(owner, limits)
  }

  /** The limits that count for an account. */
  effectiveLimits(owner: OwnerId): AccountLimits {
    return limitsFor(owner, this.#ownLimits.get(owner) ?? {}, this.#defaults)
  }

  /**
   * Counts jobs that an account wants to submit.
   * @returns null when they fit; else a promise that resolves when they fit after a new reading, and rejects with
   *   AppError `rate_limited` when they do not
   */
  admit(owner: OwnerId, jobs: readonly Pick<Submission, 'input' | 'largeInput'>[]): Promise<void> | null {
    const limits = this.effectiveLimits(owner)
    if (limits.queuedJobs === null && limits.queuedMb === null && limits.storedMb === null) return null
    const sizes = jobs.map(({ input, largeInput }) => largeInput?.bytes ?? Buffer.byteLength(input))
    const bytes = sizes.reduce((sum, size) => sum + size, 0)
    // Large inputs count as received.
    const receivedBytes = jobs.reduce((sum, { largeInput }) => sum + (largeInput?.bytes ?? 0), 0)
    const addition = { queuedJobs: jobs.length, queuedBytes: bytes, storedBytes: bytes - receivedBytes }
    const ledger = this.#openLedger(owner)
    if (!ledger.isRead || problemWith(ledger, addition, limits) !== null) return this.#admitRead(owner, addition)
    ledger.held = addHeld(ledger.held, addition)
    return null
  }

  /**
   * Refuses a large input that an account has no room for, before it is received. Counts nothing.
   * @param bytes its size, as far as it is known
   * @throws AppError `rate_limited`
   */
  async checkRoom(owner: OwnerId, bytes: number): Promise<void> {
    const limits = this.effectiveLimits(owner)
    if (limits.queuedJobs === null && limits.queuedMb === null && limits.storedMb === null) return
    const addition = { queuedJobs: 1, queuedBytes: bytes, storedBytes: bytes }
    const ledger = this.#openLedger(owner)
    if (ledger.isRead && problemWith(ledger, addition, limits) === null) return
    if (ledger.reading !== null) await ledger.reading
    else if (this.#isDue(ledger)) await this.#read(owner, ledger)
    const problem = problemWith(ledger, addition, limits)
    if (problem !== null) throw problem
  }

  /**
   * Counts a part of a large text before it is kept, until {@link keepReceived} or {@link releaseReceived}. A refusal
   * of an output fails its job, so that the use is always read before one.
   * @throws AppError `rate_limited` when the account keeps too much
   */
  async admitReceived(owner: OwnerId, bytes: number): Promise<void> {
    const { storedMb } = this.effectiveLimits(owner)
    const limits = { ...NO_LIMITS, storedMb }
    const addition = storedOnly(bytes)
    const ledger = this.#openLedger(owner)
    if (storedMb !== null && (!ledger.isRead || problemWith(ledger, addition, limits) !== null)) {
      await this.#read(owner, ledger)
      const problem = problemWith(ledger, addition, limits)
      if (problem !== null) throw problem
    }
    ledger.receivedBytes += bytes
  }

  /** Counts parts as those of a job, which has them now. */
  keepReceived(owner: OwnerId, bytes: number): void {
    const ledger = this.#openLedger(owner)
    ledger.receivedBytes -= bytes
    ledger.held = addHeld(ledger.held, storedOnly(bytes))
  }

  /** Counts parts no longer: their job has them, and counts, or they were removed. */
  releaseReceived(owner: OwnerId, bytes: number): void {
    this.#openLedger(owner).receivedBytes -= bytes
  }

  /** Counts the output of an attempt, which is kept whatever the limit. */
  noteResult(owner: OwnerId, { outputBytes, streamBytes }: JobUsage): void {
    const ledger = this.#ledgers.get(owner)
    if (ledger === undefined || outputBytes + streamBytes === 0) return
    ledger.held = { ...ledger.held, storedBytes: ledger.held.storedBytes + outputBytes + streamBytes }
  }

  /**
   * Adds an object; an account adds one at a time.
   * @throws AppError `conflict` when the account has reached its limit of that kind
   */
  adding<Added>(owner: OwnerId, kind: ObjectKind, add: () => Promise<Added>): Promise<Added> {
    return this.inTurn(owner, async () => {
      const limits = this.effectiveLimits(owner)
      if (limits.objects !== null) {
        const problem = objectProblem(kind, (await this.#ports.store.quotas.objects(owner))[kind] + 1, limits)
        if (problem !== null) throw problem
      }
      return add()
    })
  }

  /**
   * Saves an endpoint that keeps more workers. Belongs into {@link inTurn}.
   * @throws AppError `conflict` when all endpoints of the account together would keep too many
   */
  async keepingWorkers<Saved>(owner: OwnerId, addedWorkers: number, save: () => Promise<Saved>): Promise<Saved> {
    const limits = this.effectiveLimits(owner)
    if (limits.workersMin !== null && addedWorkers > 0) {
      const { workersMin } = await this.#ports.store.quotas.objects(owner)
      const problem = workersMinProblem(workersMin + addedWorkers, limits)
      if (problem !== null) throw problem
    }
    return save()
  }

  /**
   * Keeps a secret, or changes one. Must run in {@link inTurn}.
   * @param id the secret
   * @param sealedBytes size of its sealed value; null for an unchanged value
   * @param descriptionBytes null for an unchanged description
   * @throws AppError `conflict` when all secrets of the account together would be too large; a change that makes a
   *   secret smaller is never refused
   */
  async keepingSecret<Kept>(
    owner: OwnerId,
    id: SecretId,
    {
      sealedBytes,
      descriptionBytes,
    }: { readonly sealedBytes: number | null; readonly descriptionBytes: number | null },
    keep: () => Promise<Kept>,
  ): Promise<Kept> {
    const limits = this.effectiveLimits(owner)
    if (limits.secretsMb !== null) {
      const { all, sealed, description } = await this.#ports.store.quotas.secretBytes(owner, id)
      const addedBytes = (sealedBytes ?? sealed) + (descriptionBytes ?? description) - sealed - description
      const problem = addedBytes > 0 ? secretsProblem(all + addedBytes, limits) : null
      if (problem !== null) throw problem
    }
    return keep()
  }

  /**
   * Announces an archive of an app. Must run in {@link inTurn}.
   * @throws AppError `conflict` when all archives of the account together would be too large
   */
  async keepingArchive<Kept>(owner: OwnerId, bytes: number, keep: () => Promise<Kept>): Promise<Kept> {
    const limits = this.effectiveLimits(owner)
    if (limits.buildsMb !== null) {
      const problem = buildsProblem((await this.#ports.store.appBuilds.bytes(owner)) + bytes, limits)
      if (problem !== null) throw problem
    }
    return keep()
  }

  /** Records the bytes of worker output that each account has on the disk. */
  noteLogs(bytes: ReadonlyMap<OwnerId, number>): void {
    this.#logBytes = bytes
  }

  /** Runs a step after the earlier steps of the account, so that two cannot take the same last place. */
  async inTurn<Done>(owner: OwnerId, act: () => Promise<Done>): Promise<Done> {
    const previous = this.#turns.get(owner) ?? Promise.resolve()
    const done = previous.then(act, act)
    const settled = done.then(
      () => {},
      () => {},
    )
    this.#turns.set(owner, settled)
    try {
      return await done
    } finally {
      if (this.#turns.get(owner) === settled) this.#turns.delete(owner)
    }
  }

  /** An account's limits and its present use. */
  async use(owner: OwnerId): Promise<QuotaUse> {
    const { store } = this.#ports
    const ledger = this.#openLedger(owner)
    if (this.#isDue(ledger)) await this.#read(owner, ledger)
    const workers = (await store.workers.loads()).filter(worker => worker.owner === owner)
    const gpus = workers.reduce((sum, { placement }) => sum + fractionOfGpus(placement), 0)
    const objects = await store.quotas.objects(owner)
    const { all: secretBytes } = await store.quotas.secretBytes(owner, null)
    const buildBytes = await store.appBuilds.bytes(owner)
    const logBytes = this.#logBytes.get(owner) ?? 0
    const limits = this.effectiveLimits(owner)
    const held = addHeld(ledger.held, storedOnly(ledger.receivedBytes))
    const bytes = { secretBytes, buildBytes, logBytes }
    return { limits, objects, held, ...bytes, workers: workers.length, gpus: Math.round(gpus * 100) / 100 }
  }

  async #admitRead(owner: OwnerId, addition: HeldJobs): Promise<void> {
    const ledger = this.#openLedger(owner)
    if (ledger.reading !== null) await ledger.reading
    else if (this.#isDue(ledger)) await this.#read(owner, ledger)
    const problem = problemWith(ledger, addition, this.effectiveLimits(owner))
    if (problem !== null) throw problem
    ledger.held = addHeld(ledger.held, addition)
  }

  #isDue({ readAgainMs }: Ledger): boolean {
    return this.#ports.clock.monotonic() >= readAgainMs
  }

  #openLedger(owner: OwnerId): Ledger {
    const existing = this.#ledgers.get(owner)
    if (existing !== undefined) return existing
    const ledger: Ledger = { held: NOTHING_HELD, receivedBytes: 0, readAgainMs: 0, isRead: false, reading: null }
    this.#ledgers.set(owner, ledger)
    return ledger
  }

  #read(owner: OwnerId, ledger: Ledger): Promise<void> {
    if (ledger.reading !== null) return ledger.reading
    ledger.reading = this.#sum(owner, ledger).finally(() => {
      ledger.reading = null
    })
    return ledger.reading
  }

  /**
   * Jobs that are submitted during the reading are added, even if the reading has them: rather too many than too few.
   */
  async #sum(owner: OwnerId, ledger: Ledger): Promise<void> {
    const { store, clock } = this.#ports
    const startMs = clock.monotonic()
    const previous = ledger.held
    const { receivedBytes } = ledger
    // Those whose job was deleted or has expired, until they are removed.
    const unusedBytes = Math.max(0, (await store.quotas.unusedTexts(owner)) - receivedBytes)
    let sum = storedOnly(unusedBytes)
    for (const { id } of await store.endpoints.names(owner)) sum = addHeld(sum, await this.#countHeld(id))
    const added = {
      queuedJobs: ledger.held.queuedJobs - previous.queuedJobs,
      queuedBytes: ledger.held.queuedBytes - previous.queuedBytes,
      storedBytes: ledger.held.storedBytes - previous.storedBytes,
    }
    ledger.held = addHeld(sum, added)
    ledger.isRead = true
    const endMs = clock.monotonic()
    ledger.readAgainMs = endMs + Math.max(AGAIN_MS, REST * (endMs - startMs))
  }

  async #countHeld(id: EndpointId): Promise<HeldJobs> {
    const { quotas } = this.#ports.store
    let sum = await quotas.beside(id)
    let after: PagePosition | null = null
    do {
      const part: Awaited<ReturnType<typeof quotas.jobs>> = await quotas.jobs(id, after, PART)
      sum = addHeld(sum, part.held)
      after = part.next
    } while (after !== null)
    return sum
  }
}

function storedOnly(storedBytes: number): HeldJobs {
  return { queuedJobs: 0, queuedBytes: 0, storedBytes }
}

/** The limit that an account would pass with an addition; null if there is none. */
function problemWith({ held, receivedBytes }: Ledger, addition: HeldJobs, limits: AccountLimits): AppError | null {
  return heldProblem(addHeld(addHeld(held, storedOnly(receivedBytes)), addition), limits)
}
