import { type Account, type AccountChanges, MAX_ACCOUNTS, sshKeyProblems } from '../../core/accounts/account.ts'
import { type Caller, requireOperator } from '../../core/accounts/permission.ts'
import { limitProblems } from '../../core/accounts/quotas.ts'
import { AppError, invalidFields, notFound } from '../../core/errors.ts'
import { nameProblems } from '../../core/field-problem.ts'
import { DEFAULT_OWNER, type OwnerId } from '../../core/ids.ts'
import type { Ports } from '../../ports/ports.ts'
import { shortId } from '../short-id.ts'
import type { Quotas } from './quotas.ts'
import type { SharingGuard } from './sharing-guard.ts'

/** Accounts, which only the operator manages. */
export class Accounts {
  readonly #ports
  readonly #sharing
  readonly #quotas

  /**
   * @param sharing decides about a second account; notified when one exists
   * @param quotas applies changed limits at once
   */
  constructor(ports: Ports, sharing: SharingGuard, quotas: Quotas) {
    this.#ports = ports
    this.#sharing = sharing
    this.#quotas = quotas
  }

  /**
   * @throws AppError `forbidden` unless the caller is an operator, `invalid`, or `conflict` when the limit of
   *   accounts is reached or workers of different accounts are not kept apart
   */
  async create(caller: Caller, name: string): Promise<Account> {
    requireOperator(caller)
    const { store, random, clock, emit } = this.#ports
    const problems = nameProblems(name)
    if (problems.length > 0) throw invalidFields(problems)
    this.#sharing.requireApart()
    if ((await store.accounts.list()).length >= MAX_ACCOUNTS) {
      throw new AppError('conflict', `the limit of ${MAX_ACCOUNTS} accounts is reached`)
    }
    const account = {
      id: `user${shortId(random)}` as OwnerId,
      name,
      createdAtMs: clock.now(),
      deleteRunningEndpoints: false,
      limits: {},
    }
    await store.accounts.insert(account)
    this.#sharing.noteAccount()
    emit('account.created', { account: account.id, by: caller.keyId })
    return account
  }

  /**
   * All accounts, oldest first.
   * @throws AppError `forbidden` unless the caller is an operator
   */
  async list(caller: Caller): Promise<Account[]> {
    requireOperator(caller)
    return this.#ports.store.accounts.list()
  }

  /**
   * An operator finds all accounts, other callers only their own.
   * @throws AppError `not_found`
   */
  async find(caller: Caller, id: OwnerId): Promise<Account> {
    const account = caller.operator || caller.owner === id ? await this.#ports.store.accounts.find(id) : null
    if (account === null) throw notFound('account', id)
    return account
  }

  /**
   * Changes the given fields and keeps the others. An operator changes all accounts, other callers only the choices
   * of their own; names and limits are the operator's.
   * @throws AppError `not_found`, `forbidden` for a name or limits unless the caller is an operator, `invalid`
   */
  async update(caller: Caller, id: OwnerId, changes: AccountChanges): Promise<Account> {
    const { store, emit } = this.#ports
    await this.find(caller, id)
    if (changes.name !== undefined) {
      requireOperator(caller)
      const problems = nameProblems(changes.name)
      if (problems.length > 0) throw invalidFields(problems)
    }
    if (changes.limits !== undefined) {
      requireOperator(caller)
      const problems = limitProblems(changes.limits)
      if (problems.length > 0) throw invalidFields(problems)
    }
    const account = await store.accounts.update(id, changes)
    if (account === null) throw notFound('account', id)
    this.#quotas.setLimits(id, account.limits)
    emit('account.changed', { account: id, by: caller.keyId })
    return account
  }

  /** The public SSH keys of an account, as they were given. */
  sshKeys(owner: OwnerId): Promise<readonly string[]> {
    return this.#ports.store.accounts.sshKeys(owner)
  }

  /**
   * Replaces all public SSH keys of an account. They are kept for clients; no worker here has a shell.
   * @throws AppError `invalid` with all failures
   */
  async replaceSshKeys(owner: OwnerId, keys: readonly string[]): Promise<readonly string[]> {
    const problems = sshKeyProblems(keys)
    if (problems.length > 0) throw invalidFields(problems)
    await this.#ports.store.accounts.replaceSshKeys(owner, keys, this.#ports.clock.now())
    return keys
  }

  /**
   * Creates the operator's account unless it exists, and reads the limits of all accounts; the server does so at each
   * start.
   */
  async ensureOperator(): Promise<void> {
    const { store, clock } = this.#ports
    const chosen = { deleteRunningEndpoints: false, limits: {} }
    await store.accounts.insert({ id: DEFAULT_OWNER, name: 'operator', createdAtMs: clock.now(), ...chosen })
    await this.#quotas.readLimits()
  }
}
