import { GraphQLError } from 'graphql'
import { renderFields, toAppError } from '../../core/errors.ts'
import { graphqlSentence } from './field-names.ts'

/** A refusal of what Runyard does not have, so that people see more than a field that their client's schema knows. */
export function unsupported(what: string): never {
  throw new GraphQLError(`not supported: ${what}`, { extensions: { code: 'not_supported' } })
}

/**
 * An error as callers see it: with its sentence where it is meant for people, without a cause otherwise. Only a missing
 * key (401) and a store that is away (503) change the status of the answer.
 * @param report is told the cause of what callers do not get to see
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
