/**
 * Lists the tables of the database, as the migrations create them, in docs/internals/schema.md, between two markers.
 * `scripts/schema-diagram.ts` writes the page; a test checks that it is up to date. `scripts/diagram.ts` draws the
 * references between tables.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { SqliteEngine } from '../src/store/engines/sqlite-engine.ts'

/** The page with the tables. */
export const SCHEMA_PAGE = new URL('../docs/internals/schema.md', import.meta.url)

const BEGIN = '<!-- columns: begin; scripts/schema-diagram.ts writes what is between these marks -->'
const END = '<!-- columns: end -->'

interface Column {
  readonly name: string
  readonly type: string
  readonly pk: number
}

interface Reference {
  readonly column: string
  readonly target: string
}

interface Table {
  readonly name: string
  readonly columns: readonly Column[]
  readonly references: readonly Reference[]
}

/** The tables in the order in which the migrations create them. */
function tables(): Table[] {
  const { database } = new SqliteEngine({ file: ':memory:' })
  const readRows = <Row>(sql: string, table: string) => database.prepare(sql).all(table) as unknown as Row[]
  const names = database
    .prepare(`SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY rowid`)
    .all()
    .map(({ name }) => String(name))
    .filter(name => name !== 'migrations')
  const tables = names.map(name => ({
    name,
    columns: readRows<Column>('SELECT name, type, pk FROM pragma_table_info(?) ORDER BY cid', name),
    references: readRows<Reference>(
      'SELECT "from" AS "column", "table" AS target FROM pragma_foreign_key_list(?) ORDER BY id DESC',
      name,
    ),
  }))
  database.close()
  return tables
}

/** References between tables, in the language of Graphviz. */
export function drawReferences(): string {
  const arrows = tables().flatMap(({ name, references }) =>
    references.map(({ column, target }) => `${name} -> ${target} [label="${column}"]`),
  )
  return `digraph "Which tables refer to which" {\nrankdir=LR ranksep=1 nodesep=0.15\n${arrows.join('\n')}\n}`
}

/** Each table with its columns, as a table in Markdown. */
export function listColumns(): string {
  const rows = tables().map(({ name, columns, references }) => {
    const words = columns.map(column => {
      const target = references.find(reference => reference.column === column.name)?.target
      const key = column.pk > 0 ? ' **key**' : ''
      return `\`${column.name}\` ${column.type.toLowerCase()}${key}${target === undefined ? '' : ` of \`${target}\``}`
    })
    return `| \`${name}\` | ${words.join(', ')} |`
  })
  return ['| table | columns |', '|---|---|', ...rows].join('\n')
}

/** The page with the current tables between its markers. */
export function withSchema(page: string): string {
  const begin = page.indexOf(BEGIN)
  const end = page.indexOf(END)
  if (begin === -1 || end < begin) throw new Error('the page has no markers for the tables')
  return `${page.slice(0, begin + BEGIN.length)}\n\n${listColumns()}\n\n${page.slice(end)}`
}

if (import.meta.main) writeFileSync(SCHEMA_PAGE, withSchema(readFileSync(SCHEMA_PAGE, 'utf8')))
