import { AppError } from '../../core/errors.ts'
import type { Caller } from '../../core/permission.ts'
import type { Loaders } from './loaders.ts'
import type { GraphqlParts } from './parts.ts'

/** What each resolver is given: the caller, null for an anonymous one, and what is read for the request as a whole. */
export interface GraphqlContext {
  readonly caller: Caller | null
  readonly loaders: Loaders
}

/** A resolver that gets the caller, who may write. */
export type Writing = <Arguments, Result>(
  run: (caller: Caller, args: Arguments) => Promise<Result>,
) => (_: unknown, args: Arguments, context: GraphqlContext) => Promise<Result>

/** Makes resolvers of mutations. @throws AppError `unauthorized` without a key, `forbidden` without the right */
export function writingFor({ access }: Pick<GraphqlParts, 'access'>): Writing {
  return run =>
    async (_, args, { caller }) => {
      if (caller === null) throw new AppError('unauthorized', 'an API key is needed to change anything')
      access.requireManagement(caller, 'write')
      return run(caller, args)
    }
}
