/** Messages between the server and the helper program: one request a line, one answer a line, as JSON. */

/** The six calls of the driver's checkpoint API. */
export type CheckpointOp = 'find' | 'state' | 'lock' | 'checkpoint' | 'restore' | 'unlock'

/** A request to the helper. */
export type HelperRequest =
  /** Asks for the library of the driver, and for the missing functions of its checkpoint API. */
  | { readonly op: 'about' }
  | { readonly op: 'find'; readonly pids: readonly number[] }
  | { readonly op: 'state' | 'checkpoint' | 'unlock'; readonly pid: number }
  | { readonly op: 'lock'; readonly pid: number; readonly timeoutMs: number }
  /** `init`: true to initialize the library first, which a restore needs without persistence mode. */
  | { readonly op: 'restore'; readonly pid: number; readonly init: boolean }
  | CardRequest

/** A request to a helper that itself uses a card, for the checks of `runyard doctor --gpu`. */
export type CardRequest =
  | { readonly op: 'enter' }
  | { readonly op: 'allocate'; readonly bytes: number }
  | { readonly op: 'checksum' }
  | { readonly op: 'memory' }
  /**
   * Launches a kernel again and again for this time, in which a launch that is held up counts little; a
   * line of progress follows each.
   */
  | { readonly op: 'work'; readonly forMs: number }

/** State of a process at the driver. */
export type ProcessCudaState = 'running' | 'locked' | 'checkpointed' | 'failed' | 'checkpointing' | 'restoring'

/** An answer. `result` is the code of the driver, 0 for success, and `name` its name. */
export interface HelperAnswer {
  /** The missing part without which the helper cannot call at all, as `libcuda.so.1` or the name of a function. */
  readonly missing?: string
  readonly result?: number
  readonly name?: string
  /** Duration of the call. */
  readonly ms?: number
  readonly state?: ProcessCudaState
  /** The processes with CUDA among those that were asked about. */
  readonly pids?: readonly number[]
  readonly about?: { readonly path: string; readonly cuda: number; readonly lacks: readonly string[] }
  readonly card?: CardAnswer
  /** Launches that have ended, while `work` goes on; no answer yet. */
  readonly progress?: number
  /** A request that cannot be read, or a fault of the helper. */
  readonly problem?: string
}

/** Answer of a helper that uses a card. */
export interface CardAnswer {
  /** The ids of the cards that it sees. */
  readonly uuids?: readonly string[]
  readonly initMs?: number
  /** Null where the kernels run; else why they were not loaded. */
  readonly kernelProblem?: string | null
  readonly freeBytes?: number
  readonly totalBytes?: number
  /** Of all of its memory, as a decimal number. */
  readonly checksum?: string
  /** True if the first words are those that were written, or the work had the right result. */
  readonly isRight?: boolean
  readonly launches?: number
}
