import { AppError } from '../errors.ts'
import type { EndpointId, OwnerId } from '../ids.ts'

/** Limits of aliases: of an account, and of the endpoints of one. */
export const MODEL_ALIASES = { ofAccount: 200, endpoints: 10 } as const

/** Another name for models of an account. */
export interface ModelAlias {
  readonly owner: OwnerId
  readonly name: string
  /** The preferred one first; some may be gone. */
  readonly endpointIds: readonly EndpointId[]
  readonly createdAtMs: number
}

/** The form of the name of an alias: as programs write names of models. */
export const ALIAS_NAME = /^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,127}$/

/** The refusal of one alias more than an account may have. */
export function tooManyAliases(): AppError {
  return new AppError(
    'conflict',
    `an account has at most ${MODEL_ALIASES.ofAccount} aliases of models; remove some first`,
  )
}
