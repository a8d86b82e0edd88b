/** Parts of the tables of the names of fields: members of the three dialects, and functions over a table. */
import type { z } from '@hono/zod-openapi'
import type { FieldNames } from '../core/field-problem.ts'

/** The dialects of the management API: REST version 2, REST version 1 and GraphQL. */
export type Dialect = 'rest' | 'v1' | 'graphql'

/** A field as a member of the bodies of a dialect. */
export interface Member<Name extends string = string> {
  /** Its path in the bodies, such as `workers.min`. */
  readonly name: Name
  /** The value that was sent; undefined for a field that is not given. */
  read(sent: unknown): unknown
  /** The value as the dialect shows it. */
  show(value: unknown): unknown
}

/**
 * Schemas of a member of REST version 2: in a body that creates an object, in one that changes it, and in a response.
 */
export interface RestSchemas {
  readonly created: z.ZodType
  readonly changed: z.ZodType
  readonly shown: z.ZodType
}

/** A member of REST version 2. Without schemas it is part of another member, whose schema is written by hand. */
export interface RestMember<Name extends string = string, Schemas = unknown> extends Member<Name> {
  readonly schemas: Schemas
}

/** A member of REST version 1. */
export interface V1Member<Name extends string = string, Schema extends z.ZodType = z.ZodType> extends Member<Name> {
  readonly schema: Schema
}

/** A member of GraphQL, with its lines in the type and in the input of the schema. */
export interface GraphqlMember extends Member {
  readonly shownLine: string
  readonly inputLine: string
}

/** A name without more: the dialect writes, reads and shows the field by hand. */
export interface HandMade {
  readonly name: string
}

/** The names of one field. Null: the dialect has no such field, or shows it as several members. */
export interface FieldMembers {
  readonly rest: RestMember | HandMade | null
  readonly v1: V1Member | HandMade | null
  readonly graphql: GraphqlMember | HandMade | null
}

/** Names by field. */
export type MemberTable = Readonly<Record<string, FieldMembers>>

const AS_IT_IS = { read: (sent: unknown) => sent, show: (value: unknown) => value }

/** A member of REST version 2. */
export function rest<const Name extends string, Schemas extends RestSchemas | undefined = undefined>(
  name: Name,
  schemas?: Schemas,
): RestMember<Name, Schemas> {
  return { ...AS_IT_IS, name, schemas: schemas as Schemas }
}

/** A member of REST version 1. @param read converts the sent value */
export function v1<const Name extends string, Schema extends z.ZodType>(
  name: Name,
  schema: Schema,
  read: Member['read'] = AS_IT_IS.read,
): V1Member<Name, Schema> {
  return { ...AS_IT_IS, name, schema, read }
}

/** The parts of a member of GraphQL that are not the usual ones. */
interface GraphqlDetails<Sent, Value> {
  /** Converts the sent value, which is neither null nor left out; returns undefined for a field without a value. */
  readonly read?: (sent: Sent) => Value | undefined
  readonly show?: (value: Value) => unknown
  /** Description in the type, and in the input unless that has its own. */
  readonly about?: string
  readonly aboutInput?: string
  /** Type in the input, if it is another one. */
  readonly input?: string
}

/** A member of GraphQL. Null is as if left out. @param type in the schema */
export function graphql<Sent = unknown, Value = unknown>(
  name: string,
  type: string,
  { read, show, about = '', aboutInput = about, input = type }: GraphqlDetails<Sent, Value> = {},
): GraphqlMember {
  const line = (description: string, of: string) =>
    `${description === '' ? '' : `"${description}"\n    `}${name}: ${of}`
  return {
    name,
    read: sent => (sent == null ? undefined : read === undefined ? sent : read(sent as Sent)),
    show: value => (show === undefined ? value : show(value as Value)),
    shownLine: line(about, type),
    inputLine: line(aboutInput, input),
  }
}

/** The fields that a body of a dialect gives; hand-made members are left out. */
export function readFields<Config extends object>(table: MemberTable, dialect: Dialect, body: object): Partial<Config> {
  const entries = membersIn(table, dialect).map(([field, member]) => [field, member.read(valueAt(body, member.name))])
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined)) as Partial<Config>
}

/** Values as members of REST version 2, those with schemas alone. @param isShown false for a field that is left out */
export function restMembers<Table extends MemberTable>(
  table: Table,
  values: object,
  isShown: (field: string) => boolean = () => true,
): { readonly [Name in keyof RestShape<Table, 'shown'>]: z.output<RestShape<Table, 'shown'>[Name]> } {
  const shape: object = restShape(table, 'shown')
  const members = membersIn(table, 'rest').filter(([field, { name }]) => name in shape && isShown(field))
  return shownMembers(members, values) as never
}

/** Values as members of REST version 1. */
export function v1Members<Table extends MemberTable>(
  table: Table,
  values: object,
): { readonly [Name in keyof V1Shape<Table>]: unknown } {
  return shownMembers(membersIn(table, 'v1'), values) as never
}

/** Values as members of GraphQL. */
export function graphqlMembers(table: MemberTable, values: object): Readonly<Record<string, unknown>> {
  return shownMembers(membersIn(table, 'graphql'), values)
}

/** The names in problems of fields. */
export function dialectNames(table: MemberTable, dialect: Dialect): FieldNames {
  return Object.fromEntries(
    Object.entries(table).flatMap(([field, { [dialect]: member }]) => (member === null ? [] : [[field, member.name]])),
  )
}

/** The members of a table that have schemas, by their names: the shape of a body of REST version 2. */
export type RestShape<Table, Kind extends keyof RestSchemas> = {
  readonly [Field in keyof Table as RestNameIn<Table[Field]>]: Table[Field] extends {
    readonly rest: { readonly schemas: Readonly<Record<Kind, infer Schema>> }
  }
    ? Schema
    : never
}

type RestNameIn<Row> = Row extends { readonly rest: RestMember<infer Name, RestSchemas> } ? Name : never

/** The shape of a body of REST version 2. */
export function restShape<Table extends MemberTable, Kind extends keyof RestSchemas>(
  table: Table,
  kind: Kind,
): RestShape<Table, Kind> {
  const entries = Object.values(table).flatMap(({ rest }) => {
    if (rest === null || !('schemas' in rest) || rest.schemas === undefined) return []
    return [[rest.name, (rest.schemas as RestSchemas)[kind]]]
  })
  return Object.fromEntries(entries) as RestShape<Table, Kind>
}

/** The shape of a body of REST version 1. */
export type V1Shape<Table> = {
  readonly [Field in keyof Table as Table[Field] extends { readonly v1: V1Member<infer Name, z.ZodType> }
    ? Name
    : never]: Table[Field] extends { readonly v1: { readonly schema: infer Schema } } ? Schema : never
}

/** The shape of a body of REST version 1. */
export function v1Shape<Table extends MemberTable>(table: Table): V1Shape<Table> {
  const entries = Object.values(table).flatMap(({ v1 }) =>
    v1 !== null && 'schema' in v1 ? [[v1.name, v1.schema]] : [],
  )
  return Object.fromEntries(entries) as V1Shape<Table>
}

/** The lines of the members in the GraphQL schema, by field. */
export function graphqlLines<Table extends MemberTable>(
  table: Table,
  place: 'shownLine' | 'inputLine',
): Readonly<Record<keyof Table, string>> {
  const entries = Object.entries(table).flatMap(([field, { graphql }]) =>
    graphql !== null && place in graphql ? [[field, (graphql as GraphqlMember)[place]]] : [],
  )
  return Object.fromEntries(entries)
}

function membersIn(table: MemberTable, dialect: Dialect): [field: string, member: Member][] {
  return Object.entries(table).flatMap(([field, { [dialect]: member }]) =>
    member !== null && 'read' in member ? [[field, member] as [string, Member]] : [],
  )
}

function shownMembers(members: readonly [field: string, member: Member][], values: object): Record<string, unknown> {
  return Object.fromEntries(members.map(([field, member]) => [member.name, member.show(valueAt(values, field))]))
}

function valueAt(body: object, path: string): unknown {
  return path.split('.').reduce<unknown>((value, name) => Object(value)[name], body)
}
