import { type FieldProblem, fieldProblem } from '../field-problem.ts'
import type { OwnerId } from '../ids.ts'
import type { GivenLimits } from './quotas.ts'

/** An owner of objects that no other account sees. The server creates the first account, which is its operator's. */
export interface Account {
  readonly id: OwnerId
  readonly name: string
  readonly createdAtMs: number
  /** True if GraphQL may delete its endpoints while workersMin or workersMax is not 0. */
  readonly deleteRunningEndpoints: boolean
  /** Limits that the operator gave it; see core/accounts/quotas.ts. */
  readonly limits: GivenLimits
}

/** Changes of an account; omitted fields stay. */
export type AccountChanges = Partial<Pick<Account, 'name' | 'deleteRunningEndpoints' | 'limits'>>

/** Limit of accounts of one installation. */
export const MAX_ACCOUNTS = 1_000

/** Limit of public SSH keys of one account. */
export const MAX_SSH_KEYS = 100
/** Limit of characters of a public SSH key. */
export const MAX_SSH_KEY = 16_384
/** The form of a public SSH key; its content is not checked. */
export const SSH_KEY = /^(ssh|ecdsa|sk)-[^\s]+ [^\s]+([ \t][^\n\r]*)?$/

/** All problems of a list of public SSH keys. */
export function sshKeyProblems(keys: readonly string[]): FieldProblem[] {
  if (keys.length > MAX_SSH_KEYS) return [fieldProblem('sshKeys', `must have at most ${MAX_SSH_KEYS} items`)]
  return keys.flatMap((key, index) =>
    key.length <= MAX_SSH_KEY && SSH_KEY.test(key)
      ? []
      : [fieldProblem('sshKeys', 'is not of the form: type key comment', `key ${index + 1}`)],
  )
}
