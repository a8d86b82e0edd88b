import assert from 'node:assert/strict'
import { test } from 'node:test'
import { secretsBeside } from '../../console/pages/keys/rotation.ts'

test('a new key with rights on files comes with its pair for S3', () => {
  assert.deepEqual(secretsBeside({ s3: null }), [])
  assert.deepEqual(secretsBeside({ s3: { accessKeyId: 'id', secretAccessKey: 'hush' } }), [
    ['S3 access key', 'id'],
    ['S3 secret key', 'hush'],
  ])
})
