import { AppError } from '../../core/errors.ts'
import { DEFAULT_OWNER, type OwnerId } from '../../core/ids.ts'
import type { OutboundRequest } from '../../ports/outbound.ts'
import type { Ports } from '../../ports/ports.ts'

/** Settings for several accounts on one machine. */
export interface SharingRules {
  /** Whether there may be a second account although workers are not kept apart. */
  readonly acceptSharedHost: boolean
  /**
   * Webhooks that may go to private addresses: `auto` for those of the operator's account, `on` for all, `off` for none. Those of other accounts
   * never go to this machine.
   */
  readonly webhookPrivate: 'auto' | 'on' | 'off'
}

/** The defaults. */
export const SHARING_RULES: SharingRules = { acceptSharedHost: false, webhookPrivate: 'auto' }

/** Whether several accounts share this installation, and the rules for that. */
export class SharingGuard {
  readonly #ports: Pick<Ports, 'store' | 'driver'>
  readonly #rules: SharingRules
  /** Accounts are never removed, so true stays true. */
  #shared = false
  #read: Promise<boolean> | null = null

  constructor(ports: Pick<Ports, 'store' | 'driver'>, rules: SharingRules = SHARING_RULES) {
    this.#ports = ports
    this.#rules = rules
  }

  /** @throws AppError `conflict` when another account could reach what is not its own through the workers */
  requireApart(): void {
    const reason = this.#rules.acceptSharedHost ? null : this.#ports.driver.keepsApart()
    if (reason === null) return
    throw new AppError(
      'conflict',
      `a second account is not safe here: ${reason}; start the server with --accept-shared-host to make one anyway`,
    )
  }

  /**
   * Why several accounts that are there already are not safe from each other, as may be after an upgrade; null when they are, when
   * there is one, or when the operator accepts it.
   */
  async problem(): Promise<string | null> {
    const reason = this.#rules.acceptSharedHost ? null : this.#ports.driver.keepsApart()
    return reason !== null && (await this.#isShared()) ? reason : null
  }

  /** Records that an account was just made. */
  accountMade(): void {
    this.#shared = true
  }

  /** Rules for the addresses that webhooks of an account do not go to. */
  webhookRules(owner: OwnerId): Pick<OutboundRequest, 'publicOnly' | 'notThisMachine'> {
    const { webhookPrivate } = this.#rules
    const isOperator = owner === DEFAULT_OWNER
    const publicOnly = webhookPrivate === 'off' || (webhookPrivate === 'auto' && !isOperator)
    return { publicOnly, notThisMachine: !isOperator }
  }

  async #isShared(): Promise<boolean> {
    if (this.#shared) return true
    this.#read ??= this.#ports.store.accounts.list().then(accounts => accounts.length > 1)
    try {
      this.#shared = (await this.#read) || this.#shared
      return this.#shared
    } catch (error) {
      this.#read = null
      throw error
    }
  }
}
