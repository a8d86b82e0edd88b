/** The part of WebSockets that a worker in a test needs. */
import { createHash } from 'node:crypto'

/** The response that accepts a WebSocket, with the first of the offered protocols. */
export function agreed(head: string): string {
  const key = /^sec-websocket-key: (\S+)/im.exec(head)?.[1] ?? ''
  const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
  const protocol = /^sec-websocket-protocol: ([^,\r\n]+)/im.exec(head)?.[1]
  const chosen = protocol === undefined ? '' : `Sec-WebSocket-Protocol: ${protocol}\r\n`
  return `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n${chosen}\r\n`
}

/** The first frame of a client in these bytes, in one piece; null until it has arrived wholly. */
export function readFrame(bytes: Buffer): { opcode: number; payload: Buffer; size: number } | null {
  if (bytes.length < 2) return null
  const short = bytes[1]! & 127
  const lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0
  const at = 2 + lengthBytes
  if (bytes.length < at + 4) return null
  const length = short === 126 ? bytes.readUInt16BE(2) : short === 127 ? Number(bytes.readBigUInt64BE(2)) : short
  if (bytes.length < at + 4 + length) return null
  const mask = bytes.subarray(at, at + 4)
  const payload = Buffer.from(bytes.subarray(at + 4, at + 4 + length))
  for (let n = 0; n < length; n += 1) payload[n]! ^= mask[n % 4]!
  return { opcode: bytes[0]! & 15, payload, size: at + 4 + length }
}

/** A frame of a server. */
export function writeFrame(opcode: number, payload: Buffer): Buffer {
  const { length } = payload
  const head = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10)
  head[0] = 128 | opcode
  head[1] = length < 126 ? length : length < 65_536 ? 126 : 127
  if (head.length === 4) head.writeUInt16BE(length, 2)
  else if (head.length === 10) head.writeBigUInt64BE(BigInt(length), 2)
  return Buffer.concat([head, payload])
}
