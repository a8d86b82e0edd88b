/**
 * The library of NVIDIA's driver, called by `node:ffi`. A call blocks its whole process, and a fault in the driver
 * ends it: only the helper program loads this file.
 */
import { DynamicLibrary, getRawPointer, toString as textAt } from 'node:ffi'
import { LIBRARIES } from './library-folders.ts'

/** A type of an argument as `node:ffi` names it. */
type Type = 'i32' | 'u32' | 'u64' | 'pointer'
/** A function of the library: takes arguments of the {@link Type}s and returns a result code. */
export type CudaCall = (...args: (number | bigint)[]) => number

/** The result code of a successful call. */
export const SUCCESS = 0

/**
 * Memory that does not move, for values that the library reads and writes. The garbage collector could move a small
 * typed array.
 */
export class Arena {
  readonly #buffer
  readonly #base: bigint
  readonly view: DataView

  constructor(bytes: number) {
    this.#buffer = new ArrayBuffer(bytes)
    this.#base = getRawPointer(this.#buffer)
    this.view = new DataView(this.#buffer)
  }

  /** The address of a byte. */
  at(offset: number): bigint {
    return this.#base + BigInt(offset)
  }

  /** A part of it. */
  bytes(offset: number, length: number): Uint8Array {
    return new Uint8Array(this.#buffer, offset, length)
  }
}

/** The library, opened once. */
export class CudaLibrary {
  readonly path: string
  readonly #library
  readonly #arena = new Arena(8)

  private constructor(path: string, library: DynamicLibrary) {
    this.path = path
    this.#library = library
  }

  /** Opens the library of the system or of one of the usual folders; null without one. */
  static open(): CudaLibrary | null {
    for (const path of LIBRARIES) {
      try {
        return new CudaLibrary(path, new DynamicLibrary(path))
      } catch {
        // The next one.
      }
    }
    return null
  }

  /** A function of the library; null in a version without it. */
  find(name: string, types: readonly Type[]): CudaCall | null {
    try {
      return this.#library.getFunction(name, { arguments: types, return: 'i32' }) as CudaCall
    } catch {
      return null
    }
  }

  /** The name of a result code, such as `CUDA_ERROR_OUT_OF_MEMORY`; the number of a code without a name. */
  resultName(result: number): string {
    const { view } = this.#arena
    view.setBigUint64(0, 0n, true)
    this.find('cuGetErrorName', ['i32', 'pointer'])?.(result, this.#arena.at(0))
    const address = view.getBigUint64(0, true)
    return address === 0n ? String(result) : (textAt(address) ?? String(result))
  }
}
