import type { StandardSchema } from './standard-schema.ts'

/** A job as the platform sent it: its id, the caller's input, and all other fields. */
export type Job<Input = unknown> = {
  id: string
  input: Input
  [key: string]: unknown
}

/** The second argument of a handler. */
export type Context = {
  /**
   * Aborts when the caller cancels the job; nothing is posted after that. Pass it to `fetch` and similar functions.
   */
  signal: AbortSignal
  /**
   * Shows `value` (any JSON) as the job's output while it runs. Resolves once the platform has received it. Updates
   * arrive in order and never after the result. Never rejects: an update that cannot be sent is logged.
   */
  progress(value: unknown): Promise<void>
}

/** A returned object that fails the job; `refresh_worker` asks for a fresh worker afterwards. */
export type Failure = { error: unknown; refresh_worker?: boolean }

/** Return value of a handler: the job's output or a stream of chunks, or a promise of either. */
export type Returned<Output = unknown> = OneOrStream<Output | Failure> | Promise<OneOrStream<Output | Failure>>

type OneOrStream<Value> = Value | AsyncIterable<Value> | IterableIterator<Value>

/**
 * Runs one job. The returned value is the job's output. A generator, async generator or any async iterable streams:
 * each value is then an `Output`, sent as one chunk. A thrown error, or a returned object with a truthy `error`,
 * fails the job.
 */
export type Handler<Input = unknown, Output = unknown> = (job: Job<Input>, context: Context) => Returned<Output>

/** Options of `start`. */
export type StartOptions<Input = unknown, Output = unknown> = {
  /** Called once for every job. */
  handler: Handler<Input, Output>
  /**
   * Checks the input of every job; the handler gets the value that the schema returns. A job whose input does not fit
   * fails with the path of each fault. Any Standard Schema, such as one of zod or valibot.
   */
  inputSchema?: StandardSchema<Input>
  /**
   * Number of jobs that run at once: a whole number from 1, or a function that gets the current number and returns the
   * next one, called before every take. Default 1.
   */
  concurrency?: number | ((current: number) => number | Promise<number>)
  /**
   * True asks the platform for a fresh worker after every job: the worker finishes the job and exits. Default false.
   */
  refreshWorker?: boolean
  /** True delivers the list of all chunks of a streaming handler as the job's output too. Default false. */
  returnAggregateStream?: boolean
  /** Time in which the result of a job is sent again to an unreachable or failing platform, in ms. Default 600000. */
  resultRetryMs?: number
}
