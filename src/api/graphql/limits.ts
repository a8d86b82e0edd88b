import { costLimitPlugin } from '@escape.tech/graphql-armor-cost-limit'
import { maxAliasesPlugin } from '@escape.tech/graphql-armor-max-aliases'
import { maxDepthPlugin } from '@escape.tech/graphql-armor-max-depth'
import { GraphQLError, Lexer, parse, Source, TokenKind, type ValidationContext } from 'graphql'
import type { Plugin } from 'graphql-yoga'

/** Bytes of a request; a secret's value may have 16 MiB, and JSON writes what is common in texts as two. */
const MAX_BODY_BYTES = 33 * 1024 * 1024
/** Bytes of a request without a key, which can only ask. */
const MAX_ANONYMOUS_BODY_BYTES = 128 * 1024
/** Characters of a document; longer values are sent as variables. */
const MAX_CHARACTERS = 1024 * 1024
/** Words and signs of a document; a template with 200 variables has about 2,000. */
const MAX_TOKENS = 20_000
const MAX_DEPTH = 12
/** Brackets within brackets: the parser calls itself for each. Values that clients write into documents have few. */
const MAX_BRACKETS = 100
const MAX_ALIASES = 50
/** Fields count 1, objects 2, each times 1.5 for every level that they are deep; the largest query of a client has 200. */
const MAX_COST = 1_000

/** How many bytes a request may have. */
export function maxBodyBytes(hasKey: boolean): number {
  return hasKey ? MAX_BODY_BYTES : MAX_ANONYMOUS_BODY_BYTES
}

/** Bounds on what one document can ask for. Introspection is free of those of depth and cost. */
export function limitPlugins(): Plugin[] {
  const inOwnWords = {
    propagateOnRejection: false,
    onReject: [
      (context: ValidationContext | null, error: GraphQLError) =>
        context?.reportError(new GraphQLError(error.message.replace('Syntax Error: ', ''))),
    ],
  }
  return [
    {
      onParse: ({ setParseFn }) =>
        setParseFn((source, options) => {
          requireFlat(typeof source === 'string' ? new Source(source) : source)
          return parse(source, { ...options, maxTokens: MAX_TOKENS })
        }),
    },
    maxDepthPlugin({ n: MAX_DEPTH, ...inOwnWords }),
    maxAliasesPlugin({ n: MAX_ALIASES, ...inOwnWords }),
    costLimitPlugin({ maxCost: MAX_COST, ...inOwnWords }),
  ]
}

const OPENING: ReadonlySet<string> = new Set([TokenKind.BRACE_L, TokenKind.BRACKET_L, TokenKind.PAREN_L])
const CLOSING: ReadonlySet<string> = new Set([TokenKind.BRACE_R, TokenKind.BRACKET_R, TokenKind.PAREN_R])

/** Looks at the tokens before the parser does, whose stack has an end. @throws GraphQLError when it is too long or has too many brackets within brackets */
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
