/**
 * A small program that uses a card by the driver's own API: it fills memory, sums it, and launches kernels in a loop.
 */
import { KERNELS } from './card-kernels.ts'
import { Arena, type CudaCall, type CudaLibrary, SUCCESS } from './cuda-library.ts'
import type { CardAnswer, CardRequest, HelperAnswer } from './helper-messages.ts'

/** Size of one allocation: drivers and cards differ in the largest that they allow. */
const PART_BYTES = 2 ** 30
const BLOCKS = 1024
const THREADS = 256
/** Steps of one launch: some hundredths of a second on a card. */
const STEPS = 4_000_000
const SEED = 4711
/** Longest time that one launch counts for, in milliseconds: the card may hold a launch up. */
const LONGEST_LAUNCH_MS = 100
const LOW = 0xffffffffn
const FACTOR = 0x9e3779b1
/** Words at the start of a part whose contents are compared with the expected ones. */
const COMPARED_WORDS = 4096
/**
 * Offsets in the arena: results of calls, arguments of a launch and pointers to them, the kernels, words of a card.
 */
const AT = { value: 0, second: 8, args: 64, pointers: 128, name: 256, text: 512, words: 16_384 }
const ARENA_BYTES = AT.words + 4 * COMPARED_WORDS

interface Part {
  readonly at: bigint
  readonly words: number
}

/** Error with the reason of a failed step. */
class StepFailed extends Error {
  readonly result: number
  readonly step: string
  constructor(step: string, result: number) {
    super(step)
    this.step = step
    this.result = result
  }
}

/** Uses the first visible card. */
export class CardProgram {
  readonly #library
  readonly #arena = new Arena(ARENA_BYTES)
  readonly #parts: Part[] = []
  readonly #kernels = new Map<string, bigint>()
  #out = 0n

  constructor(library: CudaLibrary) {
    this.#library = library
  }

  /** Executes a request. @param progress called after each launch of `work` */
  answer(request: CardRequest, progress: (launches: number) => void): HelperAnswer {
    const begunMs = performance.now()
    try {
      const card = this.#do(request, progress)
      return { result: SUCCESS, name: this.#library.resultName(SUCCESS), ms: performance.now() - begunMs, card }
    } catch (error) {
      if (!(error instanceof StepFailed)) throw error
      const name = `${this.#library.resultName(error.result)} of ${error.step}`
      return { result: error.result, name, ms: performance.now() - begunMs }
    }
  }

  /** Gives the card back. */
  leave(): void {
    this.#library.find('cuDevicePrimaryCtxReset_v2', ['i32'])?.(0)
  }

  #do(request: CardRequest, progress: (launches: number) => void): CardAnswer {
    if (request.op === 'enter') return this.#enter()
    if (request.op === 'allocate') return this.#allocate(request.bytes)
    if (request.op === 'checksum') return this.#checksum()
    if (request.op === 'memory') return this.#memory()
    return this.#work(request.forMs, progress)
  }

  /** Takes the card, and lists the visible ones. */
  #enter(): CardAnswer {
    const { view } = this.#arena
    const begunMs = performance.now()
    this.#need('cuInit', ['u32'], 0)
    this.#need('cuDeviceGetCount', ['pointer'], this.#arena.at(AT.value))
    const count = view.getInt32(AT.value, true)
    const uuids = Array.from({ length: count }, (_, index) => {
      this.#need('cuDeviceGetUuid_v2', ['pointer', 'i32'], this.#arena.at(AT.value), index)
      return uuidText(this.#arena.bytes(AT.value, 16))
    })
    this.#need('cuDevicePrimaryCtxRetain', ['pointer', 'i32'], this.#arena.at(AT.value), 0)
    this.#need('cuCtxSetCurrent', ['u64'], view.getBigUint64(AT.value, true))
    this.#out = this.#take(256)
    const kernelProblem = this.#loadKernels()
    return { uuids, initMs: performance.now() - begunMs, kernelProblem, ...this.#memory() }
  }

  /** Fills new memory. */
  #allocate(bytes: number): CardAnswer {
    for (let bytesLeft = bytes; bytesLeft > 0; bytesLeft -= PART_BYTES) {
      const size = Math.min(bytesLeft, PART_BYTES)
      const part = { at: this.#take(size), words: Math.floor(size / 4) }
      this.#parts.push(part)
      this.#fill(part)
    }
    this.#synchronize()
    return this.#memory()
  }

  #memory(): CardAnswer {
    this.#need('cuMemGetInfo_v2', ['pointer', 'pointer'], this.#arena.at(AT.value), this.#arena.at(AT.second))
    const { view } = this.#arena
    return {
      freeBytes: Number(view.getBigUint64(AT.value, true)),
      totalBytes: Number(view.getBigUint64(AT.second, true)),
    }
  }

  /**
   * A sum over all words by the card, and a comparison of the first words of each part as this process reads them.
   */
  #checksum(): CardAnswer {
    if (this.#kernels.size > 0) {
      this.#writeOut(0n)
      for (const { at, words } of this.#parts) this.#launch('checksum', BLOCKS, [at, BigInt(words), this.#out])
      this.#synchronize()
    }
    const isRight = this.#parts.every(part => this.#isRight(part))
    return { checksum: this.#kernels.size > 0 ? String(this.#readOut()) : 'none', isRight }
  }

  /** Advances a word on the card by launches, and compares it with the expected value. */
  #work(forMs: number, progress: (launches: number) => void): CardAnswer {
    this.#writeOut(BigInt(SEED))
    let launches = 0
    for (let workedMs = 0; workedMs < forMs; launches += 1) {
      const begunMs = performance.now()
      this.#launch('advance', 1, [this.#out, BigInt(STEPS)])
      this.#synchronize()
      workedMs += Math.min(performance.now() - begunMs, LONGEST_LAUNCH_MS)
      progress(launches + 1)
    }
    const isRight = (this.#readOut() & LOW) === advanced(BigInt(SEED), launches * STEPS)
    return { launches, isRight }
  }

  #loadKernels(): string | null {
    try {
      const text = Buffer.from(`${KERNELS}\0`)
      this.#arena.bytes(AT.text, text.length).set(text)
      this.#need('cuModuleLoadData', ['pointer', 'pointer'], this.#arena.at(AT.value), this.#arena.at(AT.text))
      const module = this.#arena.view.getBigUint64(AT.value, true)
      for (const name of ['fill', 'checksum', 'advance']) {
        const bytes = Buffer.from(`${name}\0`)
        this.#arena.bytes(AT.name, bytes.length).set(bytes)
        const types = ['pointer', 'u64', 'pointer'] as const
        this.#need('cuModuleGetFunction', types, this.#arena.at(AT.value), module, this.#arena.at(AT.name))
        this.#kernels.set(name, this.#arena.view.getBigUint64(AT.value, true))
      }
      return null
    } catch (error) {
      if (!(error instanceof StepFailed)) throw error
      this.#kernels.clear()
      return `${this.#library.resultName(error.result)} of ${error.step}`
    }
  }

  /** Fills by the kernel; without one by a copy of the first words. */
  #fill({ at, words }: Part): void {
    if (this.#kernels.size > 0) {
      this.#launch('fill', BLOCKS, [at, BigInt(words), BigInt(SEED)])
      return
    }
    const count = Math.min(words, COMPARED_WORDS)
    for (let index = 0; index < count; index += 1) this.#arena.view.setUint32(AT.words + 4 * index, wordAt(index), true)
    this.#need('cuMemcpyHtoD_v2', ['u64', 'pointer', 'u64'], at, this.#arena.at(AT.words), BigInt(4 * count))
  }

  #isRight({ at, words }: Part): boolean {
    const count = Math.min(words, COMPARED_WORDS)
    this.#need('cuMemcpyDtoH_v2', ['pointer', 'u64', 'u64'], this.#arena.at(AT.words), at, BigInt(4 * count))
    return Array.from({ length: count }, (_, index) => index).every(
      index => this.#arena.view.getUint32(AT.words + 4 * index, true) === wordAt(index),
    )
  }

  #take(bytes: number): bigint {
    this.#need('cuMemAlloc_v2', ['pointer', 'u64'], this.#arena.at(AT.value), BigInt(bytes))
    return this.#arena.view.getBigUint64(AT.value, true)
  }

  #launch(kernel: string, blocks: number, args: readonly bigint[]): void {
    args.forEach((value, index) => {
      this.#arena.view.setBigUint64(AT.args + 8 * index, value, true)
      this.#arena.view.setBigUint64(AT.pointers + 8 * index, this.#arena.at(AT.args + 8 * index), true)
    })
    const address = this.#kernels.get(kernel)
    if (address === undefined) throw new StepFailed(`the kernel ${kernel}`, NOT_FOUND)
    const threads = blocks === 1 ? 1 : THREADS
    const types = ['u64', 'u32', 'u32', 'u32', 'u32', 'u32', 'u32', 'u32', 'u64', 'pointer', 'u64'] as const
    const shape = [blocks, 1, 1, threads, 1, 1]
    this.#need('cuLaunchKernel', types, address, ...shape, 0, 0n, this.#arena.at(AT.pointers), 0n)
  }

  #synchronize(): void {
    this.#need('cuCtxSynchronize', [])
  }

  #writeOut(value: bigint): void {
    this.#arena.view.setBigUint64(AT.value, value, true)
    this.#need('cuMemcpyHtoD_v2', ['u64', 'pointer', 'u64'], this.#out, this.#arena.at(AT.value), 8n)
  }

  #readOut(): bigint {
    this.#need('cuMemcpyDtoH_v2', ['pointer', 'u64', 'u64'], this.#arena.at(AT.value), this.#out, 8n)
    return this.#arena.view.getBigUint64(AT.value, true)
  }

  /** @throws StepFailed when the call is missing or fails */
  #need(name: string, types: Parameters<CudaLibrary['find']>[1], ...args: Parameters<CudaCall>): void {
    const call = this.#library.find(name, types)
    const result = call === null ? NOT_FOUND : call(...args)
    if (result !== SUCCESS) throw new StepFailed(name, result)
  }
}

/** CUDA_ERROR_NOT_FOUND. */
const NOT_FOUND = 500

function wordAt(index: number): number {
  return (Math.imul(index, FACTOR) ^ SEED) >>> 0
}

/** Advances a word by many steps of the sequence at once: a pair of steps is one step of the same form. */
function advanced(seed: bigint, steps: number): bigint {
  let word = seed
  let [factor, addend] = [1_664_525n, 1_013_904_223n]
  for (let stepsLeft = steps; stepsLeft > 0; stepsLeft = Math.floor(stepsLeft / 2)) {
    if (stepsLeft % 2 === 1) word = (word * factor + addend) & LOW
    addend = (addend * factor + addend) & LOW
    factor = (factor * factor) & LOW
  }
  return word
}

function uuidText(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes).toString('hex')
  return `GPU-${[hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')}`
}
