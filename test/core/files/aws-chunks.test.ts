import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AwsChunks } from '../../../src/core/files/aws-chunks.ts'

/** Reads a body in pieces of a size, and gives its data and its parts. */
function readAll(text: string, size: number) {
  const chunks = new AwsChunks()
  const body = Buffer.from(text)
  const seen: string[] = []
  let data = ''
  for (let at = 0; at < body.length; at += size) {
    for (const part of chunks.push(body.subarray(at, at + size))) {
      if (part.kind === 'data') data += Buffer.from(part.data).toString()
      else if (part.kind === 'begin') seen.push(`begin ${part.bytes} ${part.signature?.slice(0, 2)}`)
      else if (part.kind === 'end') seen.push('end')
      else seen.push(`trailers ${JSON.stringify([...part.trailers])}`)
    }
  }
  return { data, seen, isOver: chunks.isOver }
}

const SIGNED = `5;chunk-signature=${'ab'.repeat(32)}\r\nhe\r\no\r\n0;chunk-signature=${'cd'.repeat(32)}\r\n\r\n`
const TRAILED = '3\r\nabc\r\nA\r\n0123456789\r\n0\r\nX-Amz-Checksum-CRC32: AAAA==\r\nb:c\r\n\r\n'

test('chunks are read, however the body is cut', () => {
  for (const size of [1, 2, 3, 7, 1_000]) {
    const signed = readAll(SIGNED, size)
    assert.deepEqual(signed, {
      data: 'he\r\no',
      seen: ['begin 5 ab', 'end', 'begin 0 cd', 'end', 'trailers []'],
      isOver: true,
    })
    const trailed = readAll(TRAILED, size)
    assert.equal(trailed.data, 'abc0123456789')
    assert.equal(trailed.seen.at(-1), 'trailers [["x-amz-checksum-crc32","AAAA=="],["b","c"]]')
  }
})

test('a body that ends early is not over', () => {
  for (let length = 0; length < SIGNED.length; length += 1) {
    assert.equal(readAll(SIGNED.slice(0, length), 10).isOver, false)
  }
})

test('a body of another form is refused, with bounded memory', () => {
  const bad = [
    'hello\r\n',
    '5\nhello',
    '-1\r\n',
    'fffffffffff\r\n',
    '5;chunk-signature=ab\r\nhello\r\n',
    '5\r\nhelloworld\r\n',
    `${'0'.repeat(2_000)}`,
    `0\r\n${'a:b\r\n'.repeat(21)}\r\n`,
    '0\r\nnothing\r\n\r\n',
  ]
  for (const text of bad) assert.throws(() => readAll(text, 16), { code: 'InvalidRequest' }, JSON.stringify(text))
  assert.throws(() => readAll(`${SIGNED}more`, 1_000), { code: 'IncompleteBody' })
})
