/**
 * The checkpoint API of NVIDIA's driver, as in CUDA 12.8 to 13.5: the layouts of its arguments
 * are the same in all of them.
 */
import { Arena, type CudaCall, type CudaLibrary, SUCCESS } from './cuda-library.ts'
import type { CheckpointOp, HelperAnswer, HelperRequest, ProcessCudaState } from './helper-messages.ts'

const CALLS: Readonly<Record<CheckpointOp, string>> = {
  find: 'cuCheckpointProcessGetRestoreThreadId',
  state: 'cuCheckpointProcessGetState',
  lock: 'cuCheckpointProcessLock',
  checkpoint: 'cuCheckpointProcessCheckpoint',
  restore: 'cuCheckpointProcessRestore',
  unlock: 'cuCheckpointProcessUnlock',
}
const STATES: readonly ProcessCudaState[] = [
  'running',
  'locked',
  'checkpointed',
  'failed',
  'checkpointing',
  'restoring',
]
/** Size of the arguments of each call; bytes without a meaning have to be zero. */
const ARGS_BYTES = 64
const VALUE_AT = 128

type OwnRequest = Extract<HelperRequest, { op: CheckpointOp | 'about' }>

/** Makes the calls, each of which blocks. */
export class CheckpointCalls {
  readonly #library
  readonly #arena = new Arena(256)
  #isInitialized = false

  constructor(library: CudaLibrary) {
    this.#library = library
  }

  /** Executes a request. */
  answer(request: OwnRequest): HelperAnswer {
    if (request.op === 'about') return { about: this.#about() }
    const call = this.#call(request.op)
    if (call === null) return { missing: CALLS[request.op] }
    if (request.op === 'find') return { found: request.pids.flatMap(pid => this.#find(call, pid)) }
    if (request.op === 'restore' && request.init) {
      const result = this.#initialize()
      if (result !== SUCCESS) return { result, name: `${this.#library.resultName(result)} of cuInit` }
    }
    const begunMs = performance.now()
    const { result, value } =
      request.op === 'state' ? this.#value(call, request.pid) : { result: this.#act(call, request), value: 0 }
    const ms = performance.now() - begunMs
    const answer = { result, name: this.#library.resultName(result), ms }
    const state = request.op === 'state' && result === SUCCESS ? STATES[value] : undefined
    return state === undefined ? answer : { ...answer, state }
  }

  #about(): NonNullable<HelperAnswer['about']> {
    const version = this.#library.find('cuDriverGetVersion', ['pointer'])
    this.#arena.view.setInt32(VALUE_AT, 0, true)
    version?.(this.#arena.at(VALUE_AT))
    const lacks = (Object.keys(CALLS) as CheckpointOp[]).filter(op => this.#call(op) === null).map(op => CALLS[op])
    return { path: this.#library.path, cuda: this.#arena.view.getInt32(VALUE_AT, true), lacks }
  }

  #call(op: CheckpointOp): CudaCall | null {
    return this.#library.find(CALLS[op], ['i32', 'pointer'])
  }

  #find(call: CudaCall, pid: number): { pid: number; thread: number }[] {
    const { result, value } = this.#value(call, pid)
    return result === SUCCESS ? [{ pid, thread: value }] : []
  }

  #value(call: CudaCall, pid: number): { result: number; value: number } {
    this.#arena.view.setInt32(VALUE_AT, 0, true)
    const result = call(pid, this.#arena.at(VALUE_AT))
    return { result, value: this.#arena.view.getInt32(VALUE_AT, true) }
  }

  #act(call: CudaCall, request: OwnRequest & { pid: number }): number {
    this.#arena.bytes(0, ARGS_BYTES).fill(0)
    if (request.op === 'lock') this.#arena.view.setUint32(0, request.timeoutMs, true)
    return call(request.pid, this.#arena.at(0))
  }

  #initialize(): number {
    if (this.#isInitialized) return SUCCESS
    const result = this.#library.find('cuInit', ['u32'])?.(0) ?? SUCCESS
    this.#isInitialized = result === SUCCESS
    return result
  }
}
