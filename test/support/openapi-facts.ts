/**
 * An OpenAPI document as a flat list of facts, one line each, so that two documents with different structure can be
 * compared: `<method path> <place> <member> <type> <limits>`.
 */

type Json = { readonly [key: string]: unknown }

/** The type and the limits of one member, as text. */
export type Facts = ReadonlyMap<string, ReadonlySet<string>>

const METHODS = ['get', 'post', 'put', 'patch', 'delete']
const LIMITS = [
  ...['minimum', 'maximum', 'minLength', 'minItems', 'maxItems', 'pattern', 'format', 'default', 'const'],
  ...['uniqueItems', 'enum'],
]
/** Formats of the storage of numbers, which JSON does not show. */
const SILENT_FORMATS = new Set(['float', 'double', 'int32', 'int64'])
const MAX_DEPTH = 8

/** The facts of the operations of a document, by `<method path> <place> <member>`. */
export function openApiFacts(document: Json): Map<string, Set<string>> {
  const facts = new Map<string, Set<string>>()
  for (const [path, operations] of Object.entries(document.paths as Record<string, Json>)) {
    for (const [method, operation] of Object.entries(operations)) {
      if (METHODS.includes(method)) addOperation(document, `${method.toUpperCase()} ${path}`, operation as Json, facts)
    }
  }
  return facts
}

function addOperation(document: Json, name: string, operation: Json, facts: Map<string, Set<string>>): void {
  for (const entry of (operation.parameters as Json[] | undefined) ?? []) {
    const parameter = resolve(document, entry)
    if (parameter.in === 'path') continue
    const words = parameter.required === true ? ['required'] : []
    addSchema(document, `${name} ${parameter.in}`, `${parameter.name}`, parameter.schema as Json, words, facts)
  }
  const body = contentSchema(document, operation.requestBody as Json | undefined, 'application/json')
  if (body !== null) addSchema(document, `${name} body`, '$', body, [], facts)
  for (const [status, entry] of Object.entries(operation.responses as Record<string, Json>)) {
    const response = resolve(document, entry)
    facts.set(`${name} ${status} -`, new Set(['answered']))
    for (const header of Object.keys((response.headers as Json | undefined) ?? {})) {
      facts.set(`${name} ${status} header:${header}`, new Set(['sent']))
    }
    const schema = contentSchema(document, response, 'application/json')
    if (schema !== null) addSchema(document, `${name} ${status}`, '$', schema, [], facts)
    const problem = contentSchema(document, response, 'application/problem+json')
    if (problem !== null) addSchema(document, `${name} ${status}`, 'problem', problem, [], facts)
  }
}

function contentSchema(document: Json, holder: Json | undefined, mediaType: string): Json | null {
  const content = holder === undefined ? undefined : (resolve(document, holder).content as Record<string, Json>)
  return (content?.[mediaType]?.schema as Json | undefined) ?? null
}

function addSchema(
  document: Json,
  place: string,
  path: string,
  rawSchema: Json,
  words: readonly string[],
  facts: Map<string, Set<string>>,
  depth = 0,
): void {
  const schema = merged(document, rawSchema)
  const variants = ((schema.oneOf ?? schema.anyOf) as Json[] | undefined)?.map(variant => merged(document, variant))
  const nullable = variants?.some(({ type }) => type === 'null') ? ['nullable'] : []
  const real = variants?.filter(({ type }) => type !== 'null') ?? []
  const schemaFacts = facts.get(`${place} ${path}`) ?? new Set<string>()
  facts.set(`${place} ${path}`, schemaFacts)
  for (const word of [...words, ...nullable, ...(real.length === 1 ? describe(real[0]!) : describe(schema))])
    schemaFacts.add(word)
  if (depth >= MAX_DEPTH) return
  for (const one of real.length > 0 ? real : [schema]) addMembers(document, place, path, one, facts, depth)
}

function addMembers(
  document: Json,
  place: string,
  path: string,
  schema: Json,
  facts: Map<string, Set<string>>,
  depth: number,
): void {
  const required = new Set((schema.required as string[] | undefined) ?? [])
  for (const [name, member] of Object.entries((schema.properties as Record<string, Json> | undefined) ?? {})) {
    const words = required.has(name) ? ['required'] : []
    addSchema(document, place, path === '$' ? name : `${path}.${name}`, member, words, facts, depth + 1)
  }
  if (schema.items !== undefined) addSchema(document, place, `${path}[]`, schema.items as Json, [], facts, depth + 1)
  if (typeof schema.additionalProperties === 'object')
    addSchema(document, place, `${path}{}`, schema.additionalProperties as Json, [], facts, depth + 1)
}

function describe(schema: Json): string[] {
  const types = Array.isArray(schema.type)
    ? (schema.type as string[])
    : schema.type === undefined
      ? []
      : [schema.type as string]
  const closed = schema.additionalProperties === false || schema.unevaluatedProperties === false
  return [
    ...types.map(type => (type === 'null' ? 'nullable' : type)),
    ...(closed ? ['closed'] : []),
    ...LIMITS.filter(limit => schema[limit] !== undefined && !SILENT_FORMATS.has(String(schema[limit]))).map(limit =>
      limit === 'enum'
        ? `enum=${[...(schema.enum as unknown[])].sort().join('|')}`
        : `${limit}=${JSON.stringify(schema[limit]).replaceAll(' ', '\\u0020')}`,
    ),
  ]
}

function merged(document: Json, rawSchema: Json): Json {
  const schema = resolve(document, rawSchema)
  const { allOf, ...ownSchema } = schema
  if (allOf === undefined) return schema
  const parts = (allOf as Json[]).filter(part => !isRule(part)).map(part => merged(document, part))
  let whole: Json = {}
  for (const part of [...parts, ownSchema]) {
    const properties = { ...(whole.properties as Json | undefined) }
    for (const [name, member] of Object.entries((part.properties as Record<string, Json> | undefined) ?? {})) {
      // A member that is defined twice has the facts of both definitions.
      properties[name] = name in properties ? { allOf: [properties[name], member] } : member
    }
    const required = [
      ...((whole.required as string[] | undefined) ?? []),
      ...((part.required as string[] | undefined) ?? []),
    ]
    whole = Object.assign(whole, part, { properties, required })
  }
  return whole
}

/** True if a part only states which members belong together. */
function isRule(part: Json): boolean {
  const variants = (part.oneOf ?? part.anyOf) as Json[] | undefined
  return part.if !== undefined || variants?.every(variant => Object.keys(variant).join() === 'required') === true
}

function resolve(document: Json, value: Json): Json {
  if (typeof value.$ref !== 'string') return value
  const target = value.$ref
    .slice(2)
    .split('/')
    .reduce<unknown>((node, key) => (node as Json)[key], document) as Json
  const { $ref: _, ...beside } = value
  const resolved = resolve(document, target)
  return Object.keys(beside).length === 0 ? resolved : { allOf: [resolved, beside] }
}
