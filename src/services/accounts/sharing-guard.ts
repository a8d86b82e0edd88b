import { AppError } from '../../core/errors.ts'
import { DEFAULT_OWNER, type OwnerId } from '../../core/ids.ts'
import type { OutboundRequest } from '../../ports/outbound.ts'
import type { Ports } from '../../ports/ports.ts'

/** Settings for several accounts on one machine. */
export interface SharingRules {
  /** True to allow a second account although workers are not kept apart. */
  readonly acceptSharedHost: boolean
  /**
   * Permission of webhooks to go to private addresses: `auto` for those of the operator's account, `on` for all,
   * `off` for no webhook. Webhooks of other accounts never go to this machine.
   */
  readonly webhookPrivate: 'auto' | 'on' | 'off'
}

/** The defaults. */
export const SHARING_RULES: SharingRules = { acceptSharedHost: false, webhookPrivate: 'auto' }

/** Decides if several accounts may share this installation, and holds the rules for that. */
export class SharingGuard {
  readonly #ports
  readonly #rules
  /** Accounts are never removed, so true stays true. */
  #shared = false
  #read: Promise<boolean> | null = null

  constructor(ports: Ports, rules: SharingRules = SHARING_RULES) {
    this.#ports = ports
    this.#rules = rules
  }

  /** @throws AppError `conflict` when workers could give another account access to data that is not its own */
  requireApart(): void {
    const reason = this.#rules.acceptSharedHost ? null : this.#ports.driver.keepsApart()
    if (reason === null) return
    throw new AppError(
      'conflict',
      `a second account is not safe here: ${reason}; start the server with --accept-shared-host to create one anyway`,
    )
  }

  /**
   * Reason why existing accounts are not safe from each other, as after an upgrade; null when they are, for a single
   * account, and when the operator accepts it.
   */
  async problem(): Promise<string | null> {
    const reason = this.#rules.acceptSharedHost ? null : this.#ports.driver.keepsApart()
    return reason !== null && (await this.#isShared()) ? reason : null
  }

  /** Records that an account was created. */
  noteAccount(): void {
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
