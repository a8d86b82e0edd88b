import { type Connection, type FieldDef, type Submittable, types } from 'pg'
import type { Row, SqlParam, Statement } from '../tables/statement.ts'
import { forPostgres } from './dialect.ts'

/** Reader of a column of a result. */
interface Column {
  readonly name: string
  readonly read: (text: string) => unknown
}

/** A statement by its text, with its name in each connection where it is prepared. */
interface Prepared {
  readonly name: string
  readonly text: string
  /**
   * The columns of its rows, once PostgreSQL has described them. They never change: migrations run before operations.
   */
  columns: readonly Column[] | null
}

const statements = new Map<string, Prepared>()
/**
 * Names of the statements that each connection has prepared; `unsure` after an error that may have come before or
 * after that.
 */
const prepared = new WeakMap<Connection, Map<string, 'prepared' | 'unsure'>>()

/**
 * Statements that are sent together and answered together (PostgreSQL, "Message Flow", "Pipelining"): one message
 * each way for any number of them. After one that fails no other is run, so that a COMMIT among them never commits a
 * part. Their transaction stays open then.
 */
export class Pipeline implements Submittable {
  /** The client calls it, and wraps it where waits have an end. */
  callback: (error: Error | null, results: Row[][] | null) => void
  readonly done: Promise<Row[][]>
  readonly #statements: readonly Prepared[]
  readonly #values: readonly (string | null)[][]
  readonly #results: Row[][] = []
  #rows: Row[] = []
  #failure: Error | null = null

  /** @throws TypeError for a parameter that PostgreSQL cannot store */
  constructor(statements: readonly Statement[]) {
    this.#statements = statements.map(({ sql }) => prepareStatement(sql))
    this.#values = statements.map(({ params }) => params.map(paramText))
    const { promise, resolve, reject } = Promise.withResolvers<Row[][]>()
    this.done = promise
    this.callback = (error, results) => (error === null ? resolve(results ?? []) : reject(error))
  }

  submit(connection: Connection): void {
    const states = prepared.get(connection) ?? new Map<string, 'prepared' | 'unsure'>()
    prepared.set(connection, states)
    connection.stream.cork()
    try {
      for (const [index, { name, text, columns }] of this.#statements.entries()) {
        // A close of a statement that does not exist is no error.
        if (states.get(name) === 'unsure') connection.close({ type: 'S', name }, false)
        if (states.get(name) !== 'prepared') connection.parse({ name, text, types: [] }, false)
        states.set(name, 'prepared')
        connection.bind({ statement: name, values: this.#values[index] }, false)
        if (columns === null) connection.describe({ type: 'P', name: '' }, false)
        connection.execute({}, false)
      }
      connection.sync()
    } finally {
      connection.stream.uncork()
    }
  }

  handleRowDescription({ fields }: { readonly fields: readonly FieldDef[] }): void {
    const current = this.#statements[this.#results.length]
    if (current !== undefined)
      current.columns = fields.map(({ name, dataTypeID }) => ({ name, read: columnReader(dataTypeID) }))
  }

  handleDataRow({ fields }: { readonly fields: readonly (string | null)[] }): void {
    const columns = this.#statements[this.#results.length]?.columns ?? []
    const row: Record<string, unknown> = {}
    for (const [index, { name, read }] of columns.entries()) {
      const text = fields[index] ?? null
      row[name] = text === null ? null : read(text)
    }
    this.#rows.push(row as Row)
  }

  handleCommandComplete(): void {
    const current = this.#statements[this.#results.length]
    if (current !== undefined) current.columns ??= []
    this.#results.push(this.#rows)
    this.#rows = []
  }

  handleError(error: Error, connection: Connection): void {
    if (this.#failure !== null) return
    this.#failure = error
    const states = prepared.get(connection)
    for (const { name } of this.#statements) states?.set(name, 'unsure')
    this.callback(error, null)
  }

  handleReadyForQuery(): void {
    if (this.#failure === null) this.callback(null, this.#results)
  }

  handlePortalSuspended(): void {}

  handleEmptyQuery(): void {
    this.handleCommandComplete()
  }

  handleCopyInResponse(): void {}

  handleCopyData(): void {}
}

const INT8 = types.builtins.INT8

/**
 * Reader of a value of a type from its text. Integers of 8 bytes are numbers: all that are stored here are below 2 **
 * 53.
 */
export function columnReader(type: number): (text: string) => unknown {
  return type === INT8 ? Number : types.getTypeParser(type, 'text')
}

function prepareStatement(sql: string): Prepared {
  return statements.getOrInsertComputed(sql, () => ({
    name: `runyard_${statements.size + 1}`,
    text: forPostgres(sql),
    columns: null,
  }))
}

/** A parameter as PostgreSQL reads it. Refuses missing ones, which would be stored as NULL. */
function paramText(param: SqlParam, index: number): string | null {
  if (typeof param === 'object' && param !== null)
    return `{${param.map(value => arrayElement(paramText(value, index))).join(',')}}`
  if (param === null) return null
  if (typeof param === 'number' && Number.isFinite(param)) return String(param)
  // PostgreSQL has no text with a NUL. In JSON it is always escaped, so only free text such as an error or a log line
  // can have one; there its picture U+2400 stands for it.
  if (typeof param === 'string') return param.includes('\0') ? param.replaceAll('\0', '\u2400') : param
  throw new TypeError(`parameter $${index + 1} cannot be ${typeof param === 'number' ? param : typeof param}`)
}

function arrayElement(text: string | null): string {
  return text === null ? 'NULL' : `"${text.replaceAll(/["\\]/g, '\\$&')}"`
}
