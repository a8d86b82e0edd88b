/** Checksums that Node has no function for. Each takes the bytes so far, and gives its value after more of them. */

const CRC32C = new Uint32Array(256)
for (let byte = 0; byte < 256; byte += 1) {
  let value = byte
  for (let bit = 0; bit < 8; bit += 1) value = (value & 1) === 0 ? value >>> 1 : (value >>> 1) ^ 0x82f63b78
  CRC32C[byte] = value >>> 0
}

/** CRC-32C (Castagnoli). @param before value of the bytes before; 0 at the beginning */
export function crc32c(data: Uint8Array, before = 0): number {
  let value = ~before >>> 0
  for (let at = 0; at < data.length; at += 1) value = CRC32C[(value ^ data[at]!) & 0xff]! ^ (value >>> 8)
  return ~value >>> 0
}

/** The table of CRC-64/NVME, as halves: a 64-bit number is slow. */
const LOW = new Uint32Array(256)
const HIGH = new Uint32Array(256)
for (let byte = 0; byte < 256; byte += 1) {
  let value = BigInt(byte)
  for (let bit = 0; bit < 8; bit += 1) value = (value & 1n) === 0n ? value >> 1n : (value >> 1n) ^ 0x9a6c9329ac4bc9b5n
  LOW[byte] = Number(value & 0xffffffffn)
  HIGH[byte] = Number(value >> 32n)
}

/** CRC-64/NVME. */
export class Crc64Nvme {
  #low = 0xffffffff
  #high = 0xffffffff

  /** Adds bytes. */
  add(data: Uint8Array): void {
    let low = this.#low
    let high = this.#high
    for (let at = 0; at < data.length; at += 1) {
      const place = (low ^ data[at]!) & 0xff
      low = ((low >>> 8) | (high << 24)) ^ LOW[place]!
      high = (high >>> 8) ^ HIGH[place]!
    }
    this.#low = low
    this.#high = high
  }

  /** Its value as 8 bytes. */
  bytes(): Uint8Array {
    const bytes = new Uint8Array(8)
    const view = new DataView(bytes.buffer)
    view.setUint32(0, ~this.#high >>> 0)
    view.setUint32(4, ~this.#low >>> 0)
    return bytes
  }
}
