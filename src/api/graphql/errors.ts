import { GraphQLError } from 'graphql'
import { renderFields, toAppError } from '../../core/errors.ts'
import { graphqlSentence } from './field-names.ts'

/** An error for an unsupported feature, with a message for people. */
export function unsupported(what: string): never {
  throw new GraphQLError(`not supported: ${what}`, { extensions: { code: 'not_supported' } })
}

/**
 * An error as callers see it: with its message if that is meant for people, without the cause otherwise. Only a missing
 * key (401) and an unavailable database (503) change the response status.
 * @param report receives the cause of an error that callers do not see
 */
export function shownError(error: unknown, report: (cause: unknown) => void): GraphQLError {
  const found = error instanceof GraphQLError ? error : null
  const cause = found === null ? error : (found.originalError ?? null)
  if (found !== null && (cause === null || cause instanceof GraphQLError)) return found
  const { code, status, message } = renderFields(toAppError(cause), graphqlSentence)
  if (status >= 500) report(cause)
  const http = status === 401 || status === 503 ? { http: { status } } : {}
  const place = found === null ? {} : { nodes: found.nodes ?? null, path: found.path ?? null }
  return new GraphQLError(message, { ...place, extensions: { code, ...http } })
}
