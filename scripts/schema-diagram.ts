/**
 * Draws the tables of the database, as the migrations create them, into docs/internals/schema.md, between two markers.
 * `scripts/schema-diagram.ts` writes the page; a test checks that it is up to date.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { SqliteEngine } from '../src/store/engines/sqlite-engine.ts'

/** The page with the diagram. */
export const SCHEMA_PAGE = new URL('../docs/internals/schema.md', import.meta.url)

const BEGIN = '<!-- diagram: begin; scripts/schema-diagram.ts writes what is between these marks -->'
const END = '<!-- diagram: end -->'

interface Column {
  readonly name: string
  readonly type: string
  readonly pk: number
}

interface Reference {
  readonly column: string
  readonly target: string
}

/** The tables in the order in which the migrations create them, and their references, as a Mermaid diagram. */
export function drawSchema(): string {
  const { database } = new SqliteEngine({ file: ':memory:' })
  const rowsOf = <Row>(sql: string, table: string) => database.prepare(sql).all(table) as unknown as Row[]
  const names = database
    .prepare(`SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY rowid`)
    .all()
    .map(({ name }) => String(name))
    .filter(name => name !== 'migrations')
  const tables = names.map(name => ({
    name,
    columns: rowsOf<Column>('SELECT name, type, pk FROM pragma_table_info(?) ORDER BY cid', name),
    references: rowsOf<Reference>(
      'SELECT "from" AS "column", "table" AS target FROM pragma_foreign_key_list(?) ORDER BY id DESC',
      name,
    ),
  }))
  database.close()
  const arrows = tables.flatMap(({ name, columns, references }) =>
    references.map(({ column, target }) => {
      const isKey = columns.filter(({ pk }) => pk > 0).every(({ name: key }) => key === column)
      return `${target} ||--o${isKey ? '|' : '{'} ${name} : ${column}`
    }),
  )
  const boxes = tables.flatMap(({ name, columns, references }) => [
    `${name} {`,
    ...columns.map(column => `    ${[column.type, column.name, ...keyOf(column, references)].join(' ')}`),
    '}',
  ])
  return ['```mermaid', 'erDiagram', ...[...arrows, ...boxes].map(line => `    ${line}`), '```'].join('\n')
}

function keyOf({ name, pk }: Column, references: readonly Reference[]): string[] {
  const refers = references.some(({ column }) => column === name)
  const keys = [...(pk > 0 ? ['PK'] : []), ...(refers ? ['FK'] : [])]
  return keys.length === 0 ? [] : [keys.join(', ')]
}

/** The page with the current diagram between its markers. */
export function withSchema(page: string): string {
  const begin = page.indexOf(BEGIN)
  const end = page.indexOf(END)
  if (begin === -1 || end < begin) throw new Error('the page has no markers for the diagram')
  return `${page.slice(0, begin + BEGIN.length)}\n\n${drawSchema()}\n\n${page.slice(end)}`
}

if (import.meta.main) writeFileSync(SCHEMA_PAGE, withSchema(readFileSync(SCHEMA_PAGE, 'utf8')))
