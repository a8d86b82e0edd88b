import { GraphQLError } from 'graphql'
import { renderFields, toAppError } from '../../core/errors.ts'
import { graphqlSentence } from './field-names.ts'

/** An error for an unsupported feature, with a message for people. */
export function unsupported(what: string): never {
  throw new GraphQLError(`not supported: ${what}`, { extensions: { code: 'not_supported' } })
}

/**
 * An error as callers see it: with its message if that is meant for people, without the cause otherwise.
 * @param report receives the cause of an error that callers do not see
 */
export function shownError(error: unknown, report: (cause: unknown) => void): GraphQLError {
  const found = error instanceof GraphQLError ? error : null
  const cause = found === null ? error : (found.originalError ?? null)
  if (found !== null && (cause === null || cause instanceof GraphQLError)) return found
  const { code, status, message } = renderFields(toAppError(cause), graphqlSentence)
  if (status >= 500) report(cause)
  const place = found === null ? {} : { nodes: found.nodes ?? null, path: found.path ?? null }
  return new GraphQLError(message, { ...place, extensions: { code } })
}

/** Response status of an error that callers see: only a missing key (401) and an unavailable database (503) change it; null otherwise. */
export function statusOf({ extensions: { code } }: GraphQLError): number | null {
  return code === 'unauthorized' ? 401 : code === 'unavailable' ? 503 : null
}
