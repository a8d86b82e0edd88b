import { AppError, type ErrorCode } from '../../core/errors.ts'
import { StoreDamaged, StoreFull } from '../../ports/store/store-trouble.ts'
import type { HostCall } from './host.ts'
import type { OperationOutcome, StoreStats } from './sqlite-engine.ts'

/** Start data of the thread. */
export interface ThreadData {
  readonly file: string
}

/** A call with the number under which its answer comes. */
export interface NumberedCall extends HostCall {
  readonly id: number
}

/** Total size of results. Those of reads and of writes are counted apart, so that neither waits for the other. */
export interface LargeAnswers {
  readonly to: 'reads' | 'writes'
  readonly characters: number
}

/** Main thread to store thread. */
export type Request =
  | { readonly kind: 'calls'; readonly calls: readonly NumberedCall[] }
  | { readonly kind: 'stats'; readonly id: number }
  | { readonly kind: 'taken'; readonly large: LargeAnswers }
  | { readonly kind: 'close' }

/** An answer whose error, if any, was made fit for cloning. */
export type NumberedOutcome = OperationOutcome & { readonly id: number }

/** Store thread to main thread. */
export type Response =
  | { readonly kind: 'ready' }
  | { readonly kind: 'failed'; readonly error: unknown }
  | {
      readonly kind: 'outcomes'
      readonly outcomes: readonly NumberedOutcome[]
      /**
       * For large results: the main thread confirms that it has taken them, which bounds those on their way.
       */
      readonly large?: LargeAnswers
    }
  | { readonly kind: 'stats'; readonly id: number; readonly stats: StoreStats }

interface PackedAppError {
  readonly appError: ErrorCode
  readonly message: string
  readonly cause: unknown
  /** Of {@link StoreDamaged}. */
  readonly damage?: { readonly where: string; readonly said: string }
  /** The reason of {@link StoreFull}. */
  readonly full?: string
}

/** Cloning loses our classes, so an AppError travels as its parts. */
export function packError(error: unknown): unknown {
  if (!(error instanceof AppError)) return error
  const damage = error instanceof StoreDamaged ? { damage: { where: error.where, said: error.databaseMessage } } : {}
  const full = error instanceof StoreFull ? { full: error.reason } : {}
  return {
    appError: error.code,
    message: error.message,
    cause: error.cause,
    ...damage,
    ...full,
  } satisfies PackedAppError
}

/** The counterpart of {@link packError}. */
export function unpackError(packed: unknown): unknown {
  if (!isPacked(packed)) return packed
  const { damage, full, cause } = packed
  if (damage !== undefined) return new StoreDamaged(damage.where, damage.said, cause)
  if (full !== undefined) return new StoreFull(full, cause)
  return new AppError(packed.appError, packed.message, { cause })
}

function isPacked(value: unknown): value is PackedAppError {
  return typeof value === 'object' && value !== null && 'appError' in value
}
