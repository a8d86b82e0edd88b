import type { Random } from '../src/ports/random.ts'

/** A 32-bit FNV-1a hash. */
export function fnv1a(text: string, start = 0x811c9dc5): number {
  let hash = start
  for (let i = 0; i < text.length; i += 1) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash >>> 0
}

/**
 * A repeatable random sequence (sfc32). Each actor has its own sequence, seeded with its name, so that a further actor
 * changes no other sequence.
 */
export class SeededRandom implements Random {
  #a: number
  #b: number
  #c: number
  #counter = 1

  /** @param name name of the actor */
  constructor(seed: number, name: string) {
    this.#a = seed >>> 0
    this.#b = fnv1a(name)
    this.#c = fnv1a(name, 0x9e3779b9)
    for (let round = 0; round < 12; round += 1) this.#next()
  }

  bytes(count: number): Uint8Array {
    return Uint8Array.from({ length: count }, () => this.#next() >>> 24)
  }

  uuid(): string {
    const bytes = this.bytes(16)
    bytes[6] = (bytes[6]! & 0x0f) | 0x40
    bytes[8] = (bytes[8]! & 0x3f) | 0x80
    const hex = [...bytes].map(byte => byte.toString(16).padStart(2, '0')).join('')
    return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
  }

  /** A number from 0 (included) to 1 (not included). */
  fraction(): number {
    return this.#next() / 2 ** 32
  }

  /** A whole number from `min` to `max`, both included. */
  int(min: number, max: number): number {
    return min + Math.floor(this.fraction() * (max - min + 1))
  }

  /** True with this probability. */
  chance(probability: number): boolean {
    return this.fraction() < probability
  }

  /** One of the items. */
  pick<Item>(items: readonly Item[]): Item {
    return items[this.int(0, items.length - 1)]!
  }

  #next(): number {
    const sum = (this.#a + this.#b + this.#counter) | 0
    this.#counter = (this.#counter + 1) | 0
    this.#a = this.#b ^ (this.#b >>> 9)
    this.#b = (this.#c + (this.#c << 3)) | 0
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + sum
    this.#c |= 0
    return sum >>> 0
  }
}
