import { costLimitPlugin } from '@escape.tech/graphql-armor-cost-limit'
import { maxAliasesPlugin } from '@escape.tech/graphql-armor-max-aliases'
import { maxDepthPlugin } from '@escape.tech/graphql-armor-max-depth'
import { GraphQLError, parse, type ValidationContext } from 'graphql'
import type { Plugin } from 'graphql-yoga'

/** Bytes of a request; a secret's value may have 16 MiB, and JSON writes what is common in texts as two. */
const MAX_BODY_BYTES = 33 * 1024 * 1024
/** Bytes of a request without a key, which can only ask. */
const MAX_ANONYMOUS_BODY_BYTES = 128 * 1024
/** Words and signs of a document; a template with 200 variables has about 2,000. */
const MAX_TOKENS = 20_000
const MAX_DEPTH = 12
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
        setParseFn((source, options) => parse(source, { ...options, maxTokens: MAX_TOKENS })),
    },
    maxDepthPlugin({ n: MAX_DEPTH, ...inOwnWords }),
    maxAliasesPlugin({ n: MAX_ALIASES, ...inOwnWords }),
    costLimitPlugin({ maxCost: MAX_COST, ...inOwnWords }),
  ]
}
