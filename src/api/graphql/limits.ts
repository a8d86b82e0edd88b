import { costLimitRule } from '@escape.tech/graphql-armor-cost-limit'
import { maxAliasesRule } from '@escape.tech/graphql-armor-max-aliases'
import { maxDepthRule } from '@escape.tech/graphql-armor-max-depth'
import {
  type ArgumentNode,
  type DocumentNode,
  type FieldNode,
  GraphQLError,
  GraphQLFloat,
  type GraphQLInputType,
  GraphQLInt,
  GraphQLList,
  GraphQLNonNull,
  isListType,
  isNonNullType,
  Kind,
  Lexer,
  parse,
  type SelectionSetNode,
  Source,
  specifiedRules,
  TokenKind,
  type TypeNode,
  type ValidationContext,
  type ValidationRule,
  VariablesInAllowedPositionRule,
} from 'graphql'
import { introspectionRule } from './introspection.ts'

/** Maximum bytes of a request. A secret's value may have 16 MiB, and JSON escapes common characters as two. */
const MAX_BODY_BYTES = 33 * 1024 * 1024
/** Maximum bytes of a request without a key, which can only query. */
const MAX_ANONYMOUS_BODY_BYTES = 128 * 1024
/** Maximum characters of a document. Longer values are sent as variables. */
export const MAX_CHARACTERS = 1024 * 1024
/** Maximum tokens of a document. A template with 200 variables has about 2,000. */
export const MAX_TOKENS = 20_000
/** Maximum lines of a document: each error counts those before its place. */
const MAX_LINES = 10_000
/**
 * Maximum operations and fragments of a document: validation follows fragments into fragments,
 * and compares each with each.
 */
const MAX_DEFINITIONS = 50
/** Maximum comparisons of fields that validation makes. */
const MAX_COMPARISONS = 20_000
/** The time to compare the arguments of two fields, in comparisons for each character: it writes both down. */
const COMPARISONS_PER_CHARACTER = 0.5
const MAX_DEPTH = 12
/**
 * Maximum nesting of brackets, because the parser is recursive. Values that clients write into documents nest little.
 */
const MAX_BRACKETS = 100
const MAX_ALIASES = 50
/**
 * Maximum cost of a query. A field costs 1, an object 2, times 1.5 for each level. The largest
 * query of a client costs 200.
 */
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

/** Maximum errors of one document: each searches for names similar to a wrong one. */
export const MAX_ERRORS = 20

/**
 * The validation rules of documents: those of GraphQL, and limits. Introspection is exempt from the limits of depth
 * and cost, and has a rule of its own.
 */
export const validationRules: readonly ValidationRule[] = [
  ...specifiedRules.map(rule => (rule === VariablesInAllowedPositionRule ? variableTypesRule : rule)),
  maxDepthRule({ n: MAX_DEPTH, ...ownMessages }),
  maxAliasesRule({ n: MAX_ALIASES, ...ownMessages }),
  costLimitRule({ maxCost: MAX_COST, ...ownMessages }),
  introspectionRule,
]

/**
 * Parses a document.
 * @throws GraphQLError if it cannot be read, is too long, is nested too deep, or takes too long to validate
 */
export const parseWithinLimits: typeof parse = (query, options) => {
  requireFlat(typeof query === 'string' ? new Source(query) : query)
  const document = parse(query, { ...options, maxTokens: MAX_TOKENS })
  requireFew(document)
  return document
}

const OPENING: ReadonlySet<string> = new Set([TokenKind.BRACE_L, TokenKind.BRACKET_L, TokenKind.PAREN_L])
const CLOSING: ReadonlySet<string> = new Set([TokenKind.BRACE_R, TokenKind.BRACKET_R, TokenKind.PAREN_R])

/**
 * Checks the tokens before the recursive parser runs.
 * @throws GraphQLError if the document is too long or nested too deep
 */
function requireFlat(source: Source): void {
  if (source.body.length > MAX_CHARACTERS)
    throw new GraphQLError(`the document has more than ${MAX_CHARACTERS} characters; send long values as variables`)
  if (countCharacters(source.body, ['\n', '\r'], MAX_LINES) >= MAX_LINES)
    throw new GraphQLError(`the document has more than ${MAX_LINES} lines`)
  if (countCharacters(source.body, ['{', '[', '('], MAX_BRACKETS + 1) <= MAX_BRACKETS) return
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

/** Number of occurrences of characters in a text. @param most limit at which the count ends */
function countCharacters(text: string, characters: readonly string[], most: number): number {
  let count = 0
  for (const character of characters) {
    for (let at = text.indexOf(character); at !== -1 && count < most; at = text.indexOf(character, at + 1)) count += 1
  }
  return count
}

/** @throws GraphQLError if validation would take too long */
function requireFew({ definitions }: DocumentNode): void {
  if (definitions.length > MAX_DEFINITIONS) {
    throw new GraphQLError(`the document has more than ${MAX_DEFINITIONS} operations and fragments`)
  }
  const counting = new ComparisonCount(definitions)
  for (const each of definitions) {
    if ('selectionSet' in each && each.selectionSet !== undefined) counting.add([each.selectionSet])
  }
}

/**
 * Counts the comparisons that validation makes: each field with all others of its name and place, through fragments.
 */
class ComparisonCount {
  readonly #fragments: ReadonlyMap<string, SelectionSetNode>
  #count = 0

  constructor(definitions: DocumentNode['definitions']) {
    const fragments = definitions.filter(each => each.kind === Kind.FRAGMENT_DEFINITION)
    this.#fragments = new Map(fragments.map(({ name, selectionSet }) => [name.value, selectionSet]))
  }

  /** Adds the selections of the same place. @throws GraphQLError if it is too much or too deep */
  add(sets: readonly SelectionSetNode[], depth = 0): void {
    if (depth > MAX_BRACKETS) {
      throw new GraphQLError(`fragments nest more than ${MAX_BRACKETS} fields, or lead back to themselves`)
    }
    for (const nodes of this.#byName(sets).values()) {
      const characters = nodes.reduce((sum, { arguments: given = [] }) => sum + sourceLength(given), 0)
      this.#spend((nodes.length - 1) * (nodes.length + characters * COMPARISONS_PER_CHARACTER))
      const inner = nodes.flatMap(({ selectionSet }) => selectionSet ?? [])
      if (inner.length > 0) this.add(inner, depth + 1)
    }
  }

  #byName(sets: readonly SelectionSetNode[]): Map<string, FieldNode[]> {
    const fields = new Map<string, FieldNode[]>()
    const seen = new Set<string>()
    const waiting = [...sets]
    for (let set = waiting.pop(); set !== undefined; set = waiting.pop()) {
      this.#spend(set.selections.length)
      for (const node of set.selections) {
        if (node.kind === Kind.FIELD) {
          const name = (node.alias ?? node.name).value
          const others = fields.get(name)
          if (others === undefined) fields.set(name, [node])
          else others.push(node)
        } else if (node.kind === Kind.INLINE_FRAGMENT) waiting.push(node.selectionSet)
        else if (!seen.has(node.name.value)) {
          seen.add(node.name.value)
          const fragment = this.#fragments.get(node.name.value)
          if (fragment !== undefined) waiting.push(fragment)
        }
      }
    }
    return fields
  }

  #spend(comparisons: number): void {
    this.#count += comparisons
    if (this.#count > MAX_COMPARISONS) {
      throw new GraphQLError(
        'the document has too many fields of one name in one place, or uses its fragments too often',
      )
    }
  }
}

function sourceLength(nodes: readonly ArgumentNode[]): number {
  return (nodes.at(-1)?.loc?.end ?? 0) - (nodes[0]?.loc?.start ?? 0)
}

/**
 * The rule of GraphQL for the types of variables, except that a variable of type Int is valid wherever a Float is
 * taken, like a whole number in the document. The public API has Int for some numbers that are Floats here.
 */
function variableTypesRule(context: ValidationContext): ReturnType<ValidationRule> {
  return VariablesInAllowedPositionRule(widened(context))
}

type Usages = ReturnType<ValidationContext['getRecursiveVariableUsages']>

/** The same context, in which each place of a Float that an Int variable takes is one of an Int. */
function widened(context: ValidationContext): ValidationContext {
  const getRecursiveVariableUsages: ValidationContext['getRecursiveVariableUsages'] = operation => {
    const given = new Map(operation.variableDefinitions?.map(({ variable, type }) => [variable.name.value, type]))
    return context.getRecursiveVariableUsages(operation).map((usage): Usages[number] => {
      const type = intIn(usage.type, given.get(usage.node.name.value))
      return type === null ? usage : { ...usage, type }
    })
  }
  return Object.create(context, { getRecursiveVariableUsages: { value: getRecursiveVariableUsages } })
}

/** The type of a place with Int in place of Float, where the variable is an Int in as many lists; null elsewhere. */
function intIn(place: Usages[number]['type'], given: TypeNode | undefined): GraphQLInputType | null {
  if (!place || given === undefined) return null
  if (isNonNullType(place)) {
    const inner = intIn(place.ofType, given)
    return inner === null ? null : new GraphQLNonNull(inner as Exclude<GraphQLInputType, GraphQLNonNull<never>>)
  }
  if (given.kind === Kind.NON_NULL_TYPE) return intIn(place, given.type)
  if (isListType(place)) {
    const inner = given.kind === Kind.LIST_TYPE ? intIn(place.ofType, given.type) : null
    return inner === null ? null : new GraphQLList(inner)
  }
  return place === GraphQLFloat && given.kind === Kind.NAMED_TYPE && given.name.value === 'Int' ? GraphQLInt : null
}
