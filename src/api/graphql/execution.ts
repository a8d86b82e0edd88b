import {
  type ExecutionArgs,
  type ExecutionResult,
  execute as executeOperation,
  GraphQLError,
  type GraphQLSchema,
  NoFragmentCyclesRule,
  type parse,
  validate,
} from 'graphql'
import { createHandler, parseRequestParams } from 'graphql-http'
import type { GraphqlContext } from './context.ts'
import { type Refusal, readRefusal, shownError } from './errors.ts'
import type { SchemaResponses } from './introspection.ts'
import { MAX_ERRORS, parseWithinLimits, validationRules } from './limits.ts'
import { secretHider } from './redaction.ts'

/** A request to execute: the text of its body, or its parsed value; null for GET. */
export interface GraphqlRequest {
  readonly request: Request
  readonly body: string | Record<string, unknown> | null
  readonly context: GraphqlContext
}

/** A schema, with its caches. */
export interface ServedSchema {
  readonly schema: GraphQLSchema
  readonly responses: SchemaResponses
}

/**
 * Executes a request and responds by GraphQL over HTTP: errors are 200 for `application/json`, except those with a
 * status of their own (errors.ts).
 * @param report receives the cause of an error that callers do not see
 */
export async function execute(
  { schema, responses }: ServedSchema,
  { request, body, context }: GraphqlRequest,
  report: (cause: unknown) => void,
): Promise<Response> {
  const whole: { refusal: Refusal | null } = { refusal: null }
  let hide = (message: string): string => message
  const handle = createHandler({
    schema,
    context: () => ({ ...context }),
    ...steps(responses),
    validationRules: () => validationRules,
    async parseRequestParams(given) {
      try {
        const params = await parseRequestParams(given)
        if ('query' in params) hide = secretHider({ query: params.query, variables: params.variables })
        return params
      } catch (problem) {
        return [errorText((problem as Error).message), { status: 400, statusText: 'Bad Request' }]
      }
    },
    formatError(error) {
      const shown = shownError(error, report)
      whole.refusal ??= readRefusal(error, shown)
      return withMessage(shown, hide(shown.message))
    },
  })
  const { method, url, headers } = request
  const [text, init] = await handle({ method, url, headers, body, raw: request, context: null })
  const unread = REFUSALS[init.status]
  const { status = init.status, headers: more = {} } = whole.refusal ?? {}
  return new Response(unread === undefined ? text : errorText(unread), {
    status,
    headers: { 'content-type': 'application/json; charset=utf-8', ...init.headers, ...more },
  })
}

/** The steps of a request, which end early for a question about the schema that was asked before. */
function steps(responses: SchemaResponses) {
  return {
    parse: (query =>
      responses.cachedDocument(typeof query === 'string' ? query : query.body) ??
      parseWithinLimits(query)) satisfies typeof parse,
    validate: ((schema, document, rules) => {
      if (responses.responseTo(document) !== undefined) return []
      // The other rules follow fragments.
      const cycles = validate(schema, document, [NoFragmentCyclesRule])
      return cycles.length > 0 ? cycles : validate(schema, document, rules, { maxErrors: MAX_ERRORS })
    }) satisfies typeof validate,
    async execute(args: ExecutionArgs): Promise<ExecutionResult> {
      const kept = responses.responseTo(args.document)
      if (kept !== undefined) return kept
      const result = await executeOperation(args)
      responses.keep(args.document, result)
      return result
    },
  }
}

/** Messages of requests that are not read at all, by status. */
const REFUSALS: Readonly<Record<number, string>> = {
  405: 'send queries by GET or POST, and mutations by POST',
  406: 'the response can be application/json or application/graphql-response+json, in UTF-8',
  415: 'the request must be application/json, in UTF-8',
}

function withMessage(error: GraphQLError, message: string): GraphQLError {
  const { nodes = null, source = null, positions = null, path = null, extensions } = error
  return new GraphQLError(message, { nodes, source, positions, path, extensions })
}

function errorText(message: string): string {
  return JSON.stringify({ errors: [{ message }] })
}
