import { costLimitRule } from '@escape.tech/graphql-armor-cost-limit'
import { maxAliasesRule } from '@escape.tech/graphql-armor-max-aliases'
import { maxDepthRule } from '@escape.tech/graphql-armor-max-depth'
import { GraphQLError, Lexer, parse, Source, TokenKind, type ValidationContext, type ValidationRule } from 'graphql'

/** Maximum bytes of a request. A secret's value may have 16 MiB, and JSON escapes common characters as two. */
const MAX_BODY_BYTES = 33 * 1024 * 1024
/** Maximum bytes of a request without a key, which can only query. */
const MAX_ANONYMOUS_BODY_BYTES = 128 * 1024
/** Maximum characters of a document. Longer values are sent as variables. */
const MAX_CHARACTERS = 1024 * 1024
/** Maximum tokens of a document. A template with 200 variables has about 2,000. */
export const MAX_TOKENS = 20_000
const MAX_DEPTH = 12
/** Maximum nesting of brackets, because the parser is recursive. Values that clients write into documents nest little. */
const MAX_BRACKETS = 100
const MAX_ALIASES = 50
/** Maximum cost of a query. A field costs 1, an object 2, times 1.5 for each level. The largest query of a client costs 200. */
const MAX_COST = 1_000

/** Maximum bytes of a request. */
export function maxBodyBytes(hasKey: boolean): number {
  return hasKey ? MAX_BODY_BYTES : MAX_ANONYMOUS_BODY_BYTES
}

const ownMessages = {
  propagateOnRejection: false,
  onReject: [
    (context: ValidationContext | null, error: GraphQLError) =>
      context?.reportError(new GraphQLError(error.message.replace('Syntax Error: ', ''))),
  ],
}

/** Validation rules that limit one document. Introspection is exempt from the limits of depth and cost. */
export const limitRules: readonly ValidationRule[] = [
  maxDepthRule({ n: MAX_DEPTH, ...ownMessages }),
  maxAliasesRule({ n: MAX_ALIASES, ...ownMessages }),
  costLimitRule({ maxCost: MAX_COST, ...ownMessages }),
]

/** Parses a document. @throws GraphQLError if it cannot be read, is too long or is nested too deep */
export const parseWithinLimits: typeof parse = (source, options) => {
  requireFlat(typeof source === 'string' ? new Source(source) : source)
  return parse(source, { ...options, maxTokens: MAX_TOKENS })
}

const OPENING: ReadonlySet<string> = new Set([TokenKind.BRACE_L, TokenKind.BRACKET_L, TokenKind.PAREN_L])
const CLOSING: ReadonlySet<string> = new Set([TokenKind.BRACE_R, TokenKind.BRACKET_R, TokenKind.PAREN_R])

/** Checks the tokens before the recursive parser runs. @throws GraphQLError if the document is too long or nested too deep */
function requireFlat(source: Source): void {
  if (source.body.length > MAX_CHARACTERS)
    throw new GraphQLError(`the document has more than ${MAX_CHARACTERS} characters; send long values as variables`)
  const lexer = new Lexer(source)
  let depth = 0
  for (let tokens = 0; tokens < MAX_TOKENS; tokens += 1) {
    const { kind } = lexer.advance()
    if (kind === TokenKind.EOF) return
    if (OPENING.has(kind)) depth += 1
    else if (CLOSING.has(kind)) depth -= 1
    if (depth > MAX_BRACKETS)
      throw new GraphQLError(`the document has more than ${MAX_BRACKETS} brackets within brackets`)
  }
}
