import type { StoreStats } from './sqlite-engine.ts'

/** An operation by its name, with its arguments. */
export interface HostCall {
  readonly name: string
  readonly args: readonly unknown[]
}

/** Runner of operations, in this thread or in another one. */
export interface Host {
  /** Runs an operation; a write resolves only after it is on stable storage. */
  call(name: string, args: readonly unknown[]): Promise<unknown>
  stats(): Promise<StoreStats>
  /** Finishes the open calls and ends. Later calls are refused. */
  close(): Promise<void>
}
