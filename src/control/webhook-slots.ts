/** Limits of webhooks that are called at once. Pure bookkeeping of calls by account and receiver. */
import { mayHavePlace } from '../core/fair-share.ts'
import type { OwnerId } from '../core/ids.ts'

/** Limits of calls at once. */
export const CALLS = {
  all: 32,
  /** The last places of `all`. */
  last: { kept: 6, few: 2 },
  account: 12,
  /** Of one account, to receivers whose last call was not quick. */
  notQuick: 8,
  /** To one receiver of an account. */
  quickReceiver: 4,
  otherReceiver: 2,
} as const
/** A call that takes no longer shows that its receiver is quick. */
const QUICK_MS = 1_000
/** Maximum number of receivers that are remembered as quick. */
const MAX_QUICK = 10_000

/** The account and the receiver of a call. */
export interface WebhookReceiver {
  readonly owner: OwnerId
  /** Number of the receiver, as core/jobs/webhook.ts makes it. */
  readonly receiver: number
}

interface Account {
  calls: number
  notQuick: number
  /** Calls by receiver. */
  readonly receivers: Map<number, number>
}

/** A place of a call, which is given back once. */
export interface CallPlace {
  /** @param tookMs duration of the call; null if it was not made */
  free(tookMs: number | null): void
}

/**
 * The places for calls. Accounts have shares, so one whose receivers hang does not delay others. Within an
 * account a receiver has a share, and those that are not known to be quick have one together, so slow
 * receivers do not delay quick ones.
 */
export class WebhookSlots {
  readonly #accounts = new Map<OwnerId, Account>()
  readonly #quick = new Set<string>()
  #calls = 0

  /** Number of calls of an account. */
  accountCalls(owner: OwnerId): number {
    return this.#accounts.get(owner)?.calls ?? 0
  }

  /** Number of calls to a receiver of an account. */
  receiverCalls({ owner, receiver }: WebhookReceiver): number {
    return this.#accounts.get(owner)?.receivers.get(receiver) ?? 0
  }

  /** True when a place is free for another call of some account. */
  hasPlace(): boolean {
    return this.#calls < CALLS.all
  }

  /** True when an account may have another call, to any receiver. */
  mayCallFor(owner: OwnerId): boolean {
    const calls = this.accountCalls(owner)
    return mayHavePlace(CALLS.all - this.#calls, calls, CALLS.last) && calls < CALLS.account
  }

  /** True when another call may go to a receiver now. */
  mayCall(called: WebhookReceiver): boolean {
    if (!this.mayCallFor(called.owner)) return false
    if (this.#isQuick(called)) return this.receiverCalls(called) < CALLS.quickReceiver
    const notQuick = this.#accounts.get(called.owner)?.notQuick ?? 0
    return notQuick < CALLS.notQuick && this.receiverCalls(called) < CALLS.otherReceiver
  }

  /** Takes a place. */
  take(called: WebhookReceiver): CallPlace {
    const { owner, receiver } = called
    const account = this.#accounts.get(owner) ?? { calls: 0, notQuick: 0, receivers: new Map<number, number>() }
    this.#accounts.set(owner, account)
    const notQuick = this.#isQuick(called) ? 0 : 1
    const change = (by: 1 | -1) => {
      this.#calls += by
      account.calls += by
      account.notQuick += by * notQuick
      const calls = (account.receivers.get(receiver) ?? 0) + by
      if (calls === 0) account.receivers.delete(receiver)
      else account.receivers.set(receiver, calls)
      if (account.calls === 0) this.#accounts.delete(owner)
    }
    change(1)
    let isFree = false
    return {
      free: tookMs => {
        if (isFree) return
        isFree = true
        change(-1)
        if (tookMs !== null) this.#note(called, tookMs <= QUICK_MS)
      },
    }
  }

  #isQuick(called: WebhookReceiver): boolean {
    return this.#quick.has(receiverKey(called))
  }

  #note(called: WebhookReceiver, isQuick: boolean): void {
    const name = receiverKey(called)
    this.#quick.delete(name)
    if (!isQuick) return
    this.#quick.add(name)
    const [oldest] = this.#quick
    if (this.#quick.size > MAX_QUICK) this.#quick.delete(oldest!)
  }
}

function receiverKey({ owner, receiver }: WebhookReceiver): string {
  return `${receiver} ${owner}`
}
