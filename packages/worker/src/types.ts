import type { StandardSchema } from './standard-schema.ts'

/** A job as the platform handed it out: its id, the caller's input, and whatever else the platform sent along. */
export type Job<Input = unknown> = {
  id: string
  input: Input
  [key: string]: unknown
}

/** What a handler can use besides the job itself. */
export type Context = {
  /** Aborts when the caller cancels the job. Pass it to `fetch` and friends; after it, nothing is posted any more. */
  signal: AbortSignal
  /**
   * Shows `value` (anything JSON can hold) as the job's output while it is running. Resolves once the platform has it.
   * Updates arrive in order and never after the result. Never rejects: an update that cannot be sent is logged.
   */
  progress(value: unknown): Promise<void>
}

/** A returned object that fails the job; `refresh_worker` asks for a fresh worker afterwards. */
export type Failure = { error: unknown; refresh_worker?: boolean }

/** What a handler may return: the job's output, or a stream of chunks, at once or later. */
export type Returned<Output = unknown> = OneOrStream<Output | Failure> | Promise<OneOrStream<Output | Failure>>

type OneOrStream<Value> = Value | AsyncIterable<Value> | IterableIterator<Value>

/**
 * Runs one job. The returned value is the job's output. A generator, async generator or any async iterable streams:
 * each value, an `Output` then, goes out as one chunk. A thrown error, or a returned object with a truthy `error`,
 * fails the job.
 */
export type Handler<Input = unknown, Output = unknown> = (job: Job<Input>, context: Context) => Returned<Output>

/** What `start` accepts. */
export type StartOptions<Input = unknown, Output = unknown> = {
  /** Called once for every job. */
  handler: Handler<Input, Output>
  /**
   * Checks the input of every job before the handler sees it, which then gets what the schema made of it. A job whose
   * input does not fit fails with the paths of what is wrong. Any Standard Schema, such as one of zod or valibot.
   */
  inputSchema?: StandardSchema<Input>
  /**
   * How many jobs run at once: a whole number from 1, or a function that gets the current number and returns the next
   * one, asked before every take. Default 1.
   */
  concurrency?: number | ((current: number) => number | Promise<number>)
  /** Ask the platform for a fresh worker after every job: the worker finishes the job and exits. Default false. */
  refreshWorker?: boolean
  /** For streaming handlers: deliver the list of all chunks as the job's output as well. Default false. */
  returnAggregateStream?: boolean
  /** How long a finished job's result is offered to an unreachable or failing platform, in ms. Default 600000. */
  resultRetryMs?: number
}
