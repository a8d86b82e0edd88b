import {
  type ASTNode,
  type DocumentNode,
  type ExecutionResult,
  type FieldNode,
  GraphQLError,
  Kind,
  SchemaMetaFieldDef,
  TypeMetaFieldDef,
  type ValidationRule,
} from 'graphql'

/** Fields of a type that list parts of it. */
const LISTS: readonly string[] = ['fields', 'inputFields', 'enumValues', 'interfaces', 'possibleTypes']
/** Fields that lead from one type to another. */
const REFERENCES: readonly string[] = ['type', 'interfaces', 'possibleTypes']

/**
 * Limit of references from type to type in a question that still lists parts, by its field. It is 0 for all types:
 * the response would have each type once for each reference to it. Clients ask for the names of these.
 */
const MOST_REFERENCES: Readonly<Record<string, number>> = { [SchemaMetaFieldDef.name]: 0, [TypeMetaFieldDef.name]: 1 }

/**
 * Validation rule: a document asks for the schema or for a type once and without aliases, so that the response has
 * each part of the schema at most once. Anybody may ask.
 */
export const introspectionRule: ValidationRule = context => {
  let count = 0
  return {
    Field(node) {
      const most = MOST_REFERENCES[node.name.value]
      if (most === undefined) return
      count += 1
      if (count === 2 || node.alias !== undefined) {
        context.reportError(problem('a document asks for __schema or __type once, without an alias', node))
      }
      new QuestionCheck(context, most).check(node, 0)
      return false
    },
  }
}

type RuleContext = Parameters<ValidationRule>[0]

/** Follows the fields of a question about the schema, through its fragments. */
class QuestionCheck {
  readonly #context
  readonly #most
  readonly #seen = new Set<string>()

  constructor(context: RuleContext, most: number) {
    this.#context = context
    this.#most = most
  }

  check(node: ASTNode, references: number): void {
    const { selections } = ('selectionSet' in node && node.selectionSet) || { selections: [] }
    for (const child of selections) {
      if (child.kind === Kind.FIELD) this.#field(child, references)
      else if (child.kind === Kind.INLINE_FRAGMENT) this.check(child, references)
      else this.#fragment(child.name.value, references)
    }
  }

  #field(node: FieldNode, references: number): void {
    const name = node.name.value
    if (node.alias !== undefined) {
      this.#context.reportError(problem('a question about the schema has no aliases', node))
    }
    if (LISTS.includes(name) && references > this.#most) {
      const words = `${name} of a type that another one refers to are not in the same response`
      this.#context.reportError(problem(`${words}; ask with __type(name: ...)`, node))
    }
    this.check(node, references + (REFERENCES.includes(name) ? 1 : 0))
  }

  /**
   * A fragment is looked through once for each number of references; a chain of them is as long
   * as a document has fragments.
   */
  #fragment(name: string, references: number): void {
    const counted = Math.min(references, this.#most + 1)
    const known = `${counted} ${name}`
    if (this.#seen.has(known)) return
    this.#seen.add(known)
    const fragment = this.#context.getFragment(name)
    if (fragment) this.check(fragment, counted)
  }
}

function problem(message: string, node: FieldNode): GraphQLError {
  return new GraphQLError(message, { nodes: node })
}

/** Maximum questions that are kept with their responses. Each kind of client has one. */
const MAX_CACHED = 20
/** Maximum characters of a question that is kept. */
const MAX_CHARACTERS = 10_000

/**
 * Caches the latest questions about the whole schema with their responses: everybody gets the same one, and it never
 * changes.
 */
export class SchemaResponses {
  readonly #documents = new Map<string, DocumentNode>()
  readonly #responses = new WeakMap<DocumentNode, ExecutionResult>()

  /** The document of a question, if its response is kept. */
  cachedDocument(query: string): DocumentNode | undefined {
    return this.#documents.get(query)
  }

  /** The response to a document from {@link cachedDocument}. */
  responseTo(document: DocumentNode): ExecutionResult | undefined {
    return this.#responses.get(document)
  }

  /** Keeps the response to a document, if that asks for the schema alone and has no variables. */
  keep(document: DocumentNode, response: ExecutionResult): void {
    const query = document.loc?.source.body ?? ''
    if (query.length > MAX_CHARACTERS || response.errors !== undefined || !isQuestion(document)) return
    this.#documents.set(query, document)
    this.#responses.set(document, response)
    const [oldest] = this.#documents.keys()
    if (this.#documents.size > MAX_CACHED) this.#documents.delete(oldest!)
  }
}

function isQuestion({ definitions }: DocumentNode): boolean {
  const operations = definitions.flatMap(each => (each.kind === Kind.OPERATION_DEFINITION ? [each] : []))
  const [operation] = operations
  if (operation === undefined || operations.length > 1 || operation.variableDefinitions?.length !== 0) return false
  const [field, ...others] = operation.selectionSet.selections
  return others.length === 0 && field?.kind === Kind.FIELD && field.name.value === SchemaMetaFieldDef.name
}
