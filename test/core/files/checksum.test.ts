import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Crc64Nvme, crc32c } from '../../../src/core/files/checksum.ts'

const DIGITS = Buffer.from('123456789')

test('the checksums have the check values of their catalog, also in pieces', () => {
  assert.equal(crc32c(DIGITS), 0xe3069283)
  assert.equal(crc32c(DIGITS.subarray(4), crc32c(DIGITS.subarray(0, 4))), 0xe3069283)
  const crc = new Crc64Nvme()
  for (const digit of DIGITS) crc.add(Uint8Array.of(digit))
  assert.equal(Buffer.from(crc.bytes()).toString('hex'), 'ae8b14860a799888')
})
