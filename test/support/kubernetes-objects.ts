/** Check of objects against the schemas of Kubernetes, read from the source of its API server. */
import { readFileSync } from 'node:fs'

/** An object of Kubernetes. */
export interface KubernetesObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly labels?: Record<string, string> }
  // biome-ignore lint/suspicious/noExplicitAny: tests look into objects of all kinds
  readonly [field: string]: any
}

/** The part of a JSON schema that the description uses. */
interface Schema {
  readonly $ref?: string
  readonly type?: string
  readonly format?: string
  readonly enum?: readonly unknown[]
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: Schema
  readonly required?: readonly string[]
  readonly 'x-kubernetes-group-version-kind'?: readonly { group: string; version: string; kind: string }[]
}

/** Mistakes of an object, one line each. */
export type ObjectCheck = (object: KubernetesObject) => string[]

/** Reads the description. @param file `api/openapi-spec/swagger.json` of Kubernetes */
export function openObjectCheck(file: string): ObjectCheck {
  const { definitions } = JSON.parse(readFileSync(file, 'utf8')) as { definitions: Record<string, Schema> }
  const byKind = new Map<string, Schema>()
  for (const schema of Object.values(definitions)) {
    for (const { group, version, kind } of schema['x-kubernetes-group-version-kind'] ?? [])
      byKind.set(`${group === '' ? '' : `${group}/`}${version} ${kind}`, schema)
  }
  const mistakes = (value: unknown, { $ref, ...schema }: Schema, path: string): string[] => {
    if ($ref !== undefined) return mistakes(value, definitions[$ref.replace('#/definitions/', '')]!, path)
    return mistakesIn(value, schema, path, mistakes)
  }
  return object => {
    const kind = `${object.apiVersion} ${object.kind}`
    const schema = byKind.get(kind)
    return schema === undefined ? [`${kind} is no kind of object`] : mistakes(object, schema, object.kind)
  }
}

/** Stricter than an API server in one thing: fields that nobody knows are mistakes. */
function mistakesIn(
  value: unknown,
  schema: Schema,
  path: string,
  deeper: (value: unknown, schema: Schema, path: string) => string[],
): string[] {
  if (!hasType(value, schema)) return [`${path} is ${JSON.stringify(value)} and no ${schema.format ?? schema.type}`]
  const listed = schema.enum === undefined || schema.enum.includes(value)
  if (!listed) return [`${path} is ${JSON.stringify(value)} and none of ${JSON.stringify(schema.enum)}`]
  if (Array.isArray(value)) return value.flatMap((item, at) => deeper(item, schema.items ?? {}, `${path}[${at}]`))
  if (typeof value !== 'object' || value === null) return []
  const { properties, additionalProperties, required = [] } = schema
  const missing = required.filter(name => !(name in value)).map(name => `${path} has no ${name}`)
  // A schema without both takes any object.
  if (properties === undefined && additionalProperties === undefined) return missing
  const inside = Object.entries(value).flatMap(([name, field]) => {
    const fieldSchema = properties?.[name] ?? additionalProperties
    return fieldSchema === undefined
      ? [`${path} has a field ${name}, which nobody knows`]
      : deeper(field, fieldSchema, `${path}.${name}`)
  })
  return [...missing, ...inside]
}

function hasType(value: unknown, { type, format }: Schema): boolean {
  if (format === 'int-or-string') return typeof value === 'string' || Number.isInteger(value)
  if (type === 'integer') return Number.isInteger(value)
  if (type === 'array') return Array.isArray(value)
  if (type === 'object') return typeof value === 'object' && value !== null && !Array.isArray(value)
  // Quantities are strings in the description, and numbers are taken for them.
  return type === undefined || type === typeof value
}
