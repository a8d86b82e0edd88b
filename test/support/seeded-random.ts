import type { Random } from '../../src/ports/random.ts'

/** Random numbers that are the same in each run (mulberry32). */
export function createSeededRandom(seed: number): Random {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return (mixed ^ (mixed >>> 14)) & 0xff
  }
  const bytes = (count: number) => Uint8Array.from({ length: count }, next)
  return {
    bytes,
    uuid() {
      const hex = Buffer.from(bytes(16)).toString('hex')
      return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`
    },
  }
}
