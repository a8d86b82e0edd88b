import { GraphQLError } from 'graphql'
import { renderFields, toAppError } from '../../core/errors.ts'
import { graphqlSentence } from '../field-names.ts'
import { refusalHeaders } from '../surface.ts'

/** An error for an unsupported feature, with a message for people. */
export function unsupported(what: string): never {
  throw new GraphQLError(`not supported: ${what}`, { extensions: { code: 'not_supported' } })
}

/**
 * An error as callers see it: with its message if that is meant for people, without the cause otherwise.
 * @param report receives the cause of an error that callers do not see
 */
export function shownError(error: unknown, report: (cause: unknown) => void): GraphQLError {
  const graphqlError = error instanceof GraphQLError ? error : null
  const cause = graphqlError === null ? error : (graphqlError.originalError ?? null)
  if (graphqlError !== null && (cause === null || cause instanceof GraphQLError)) return graphqlError
  const { code, status, message } = renderFields(toAppError(cause), graphqlSentence)
  if (status >= 500) report(cause)
  const place = graphqlError === null ? {} : { nodes: graphqlError.nodes ?? null, path: graphqlError.path ?? null }
  return new GraphQLError(message, { ...place, extensions: { code } })
}

/** Effect of an error on the whole response. */
export interface Refusal {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
}

/**
 * The refusal of a whole request: only for a missing key (401) and an unavailable part, such as the database (503);
 * null otherwise.
 * @param shown the error as callers see it
 */
export function readRefusal(error: unknown, { extensions: { code } }: GraphQLError): Refusal | null {
  if (code === 'unauthorized') return { status: 401, headers: {} }
  if (code !== 'unavailable') return null
  const cause = error instanceof GraphQLError ? error.originalError : error
  return { status: 503, headers: refusalHeaders(toAppError(cause)) }
}
