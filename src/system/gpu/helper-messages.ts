/** Messages between the server and the helper program: one request a line, one answer a line, as JSON. */

/** The six calls of the driver's checkpoint API. */
export type CheckpointOp = 'find' | 'state' | 'lock' | 'checkpoint' | 'restore' | 'unlock'

/** A request to the helper. */
export type HelperRequest =
  /** The library, and the missing functions of its checkpoint API. */
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
   * Launches a kernel again and again for this time, in milliseconds. A launch that is held up counts for a tenth of
   * a second at most. A line of progress follows each launch.
   */
  | { readonly op: 'work'; readonly forMs: number }

/** State of a process in the driver. */
export type ProcessCudaState = 'running' | 'locked' | 'checkpointed' | 'failed' | 'checkpointing' | 'restoring'

/** An answer. `result` is the code of the driver, 0 for success, and `name` its name. */
export interface HelperAnswer {
  /** Missing part without which the helper cannot call, such as `libcuda.so.1` or the name of a function. */
  readonly missing?: string
  readonly result?: number
  readonly name?: string
  /** Duration of the call. */
  readonly ms?: number
  readonly state?: ProcessCudaState
  /** The processes with CUDA among the requested ones, each with its thread that belongs to the driver. */
  readonly found?: readonly { readonly pid: number; readonly thread: number }[]
  readonly about?: { readonly path: string; readonly cuda: number; readonly lacks: readonly string[] }
  readonly card?: CardAnswer
  /** Number of finished launches, during `work`; not the answer yet. */
  readonly progress?: number
  /** A request that cannot be read, or a fault of the helper. */
  readonly problem?: string
}

/** Answer of a helper that uses a card. */
export interface CardAnswer {
  /** The ids of the visible cards. */
  readonly uuids?: readonly string[]
  readonly initMs?: number
  /** Null when the kernels run; else the reason why they were not loaded. */
  readonly kernelProblem?: string | null
  readonly freeBytes?: number
  readonly totalBytes?: number
  /** Checksum of all its memory, as a decimal number. */
  readonly checksum?: string
  /** True if the first words have their written values, or the work had the right result. */
  readonly isRight?: boolean
  readonly launches?: number
}
