/** One line of docs/reference/jobs.md as a request and the whole answer that it must get. */

/** History of the job of a row before its request. */
export type Situation =
  | 'queued'
  | 'running'
  | 'progress'
  | 'completed'
  | 'no output'
  | 'nan'
  | 'failed'
  | 'cancelled'
  | 'cancelled running'
  | 'timed out'
  | 'lost once'
  | 'chunk'
  | 'chunk, completed'
  | 'chunk, failed'
  | 'generator done'
  | 'expired'
  | 'foreign'

/** Action of the worker or another client while the request is held. */
export type Meanwhile = 'takes it' | 'finishes it' | 'fails it' | 'takes it, then it is cancelled' | 'yields a chunk'

/** A request and its answer. In all texts `{job}` stands for the job of the row and `{endpoint}` for its endpoint. */
export interface Row {
  readonly says: string
  /** Method and path below `/v2/{endpoint}`. */
  readonly ask: string
  readonly at?: 'queue' | 'balancer' | 'nowhere'
  readonly job?: Situation
  readonly headers?: Readonly<Record<string, string>>
  /** Asks without a key. */
  readonly anonymous?: true
  readonly send?: string
  readonly meanwhile?: Meanwhile
  /** The status line behind the version. */
  readonly answers: string
  /** Headers beside Content-Type: application/json, Date, Connection and the length. */
  readonly with?: Readonly<Record<string, string>>
  /**
   * JSON whose members, and no others, the body must have, with `<int>` and the like for values; or the text itself.
   */
  readonly body: string | RegExp
  /** Shortest and longest time for which the answer must be held, in milliseconds. */
  readonly held?: readonly [min: number, max: number]
}
