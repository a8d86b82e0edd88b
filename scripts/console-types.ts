/** Writes the types of the console's client, `api-types.d.ts`, from the OpenAPI document; git does not keep them. */
import { writeFileSync } from 'node:fs'
import { JOB_OPERATIONS } from '../src/api/jobs/operations.ts'
import type { ApiParts } from '../src/api/parts.ts'
import { openApiDocument } from '../src/api/rest/openapi.ts'
import { restRoutes } from '../src/api/rest/routes.ts'

/** The written file. */
export const TYPES_FILE = new URL('../console/client/api-types.d.ts', import.meta.url)

type Json = { readonly [key: string]: unknown }

/** The types of all operations of a document: `Operations` by method and path, and one type for each named schema. */
export function renderTypes(document: Json): string {
  const { schemas } = document.components as { readonly schemas: Readonly<Record<string, Json>> }
  const named = Object.entries(schemas).map(([name, schema]) => `export type ${name} = ${schemaType(schema)}\n`)
  const operations = Object.entries(document.paths as Readonly<Record<string, Readonly<Record<string, Json>>>>).flatMap(
    ([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => [`${method.toUpperCase()} ${path}`, operation] as const),
  )
  const members = operations.map(([name, operation]) => `  ${JSON.stringify(name)}: ${operationType(operation)}\n`)
  return `${named.join('\n')}\nexport interface Operations {\n${members.join('')}}\n`
}

function operationType(operation: Json): string {
  const parameters = (operation.parameters ?? []) as readonly Json[]
  const of = (place: string) => {
    const members = parameters.filter(one => one.in === place)
    if (members.length === 0) return 'never'
    const typed = members.map(({ name, required, schema }) =>
      required === true
        ? `${JSON.stringify(name)}: ${schemaType(schema)}`
        : `${JSON.stringify(name)}?: ${schemaType(schema)} | undefined`,
    )
    return `{ ${typed.join('; ')} }`
  }
  const body = jsonType(operation.requestBody)
  const success = Object.entries(operation.responses as Json).find(([status]) => status.startsWith('2'))
  const answer = jsonType(success?.[1])
  return `{ path: ${of('path')}; query: ${of('query')}; body: ${body ?? 'never'}; answer: ${answer ?? 'undefined'} }`
}

function jsonType(holder: unknown): string | null {
  const { content = {} } = (holder ?? {}) as { readonly content?: Readonly<Record<string, Json>> }
  const json = content['application/json']
  return json === undefined ? null : schemaType(json.schema)
}

function schemaType(value: unknown): string {
  const schema = (value ?? {}) as Json
  if (typeof schema.$ref === 'string') return schema.$ref.split('/').at(-1)!
  if ('const' in schema) return JSON.stringify(schema.const)
  if (Array.isArray(schema.enum)) return schema.enum.map(value => JSON.stringify(value)).join(' | ')
  const parts: string[] = []
  if (typeof schema.type === 'string' || Array.isArray(schema.type)) {
    parts.push(
      [schema.type]
        .flat()
        .map(type => plainType(String(type), schema))
        .join(' | '),
    )
  }
  for (const [keyword, joint] of JOINTS) {
    const all = ((schema[keyword] ?? []) as unknown[]).map(schemaType).filter(type => type !== 'unknown')
    if (all.length > 0) parts.push(all.map(type => `(${type})`).join(joint))
  }
  return parts.length === 0 ? 'unknown' : parts.map(part => `(${part})`).join(' & ')
}

const JOINTS = [
  ['oneOf', ' | '],
  ['anyOf', ' | '],
  ['allOf', ' & '],
] as const

function plainType(type: string, schema: Json): string {
  if (type === 'integer') return 'number'
  if (type === 'array') return `(${schemaType(schema.items)})[]`
  if (type !== 'object') return type
  const { properties, additionalProperties: otherMembers } = schema
  const required = new Set((schema.required ?? []) as string[])
  const members = Object.entries((properties ?? {}) as Json).map(
    ([name, member]) => `${JSON.stringify(name)}${required.has(name) ? '' : '?'}: ${schemaType(member)}`,
  )
  const rest =
    otherMembers !== undefined && otherMembers !== false
      ? schemaType(otherMembers)
      : properties === undefined
        ? 'unknown'
        : null
  if (members.length === 0) return `{ [key: string]: ${rest ?? 'never'} }`
  return `{ ${members.join('; ')} }${rest === null ? '' : ` & { [key: string]: ${rest} }`}`
}

/** The types of the present routes. */
export function consoleTypes(): string {
  // The routes are only described, not called.
  const parts = { addresses: () => ({}) } as unknown as ApiParts
  return renderTypes(openApiDocument({ routes: restRoutes(parts), operations: JOB_OPERATIONS }))
}

if (import.meta.main) writeFileSync(TYPES_FILE, consoleTypes())
