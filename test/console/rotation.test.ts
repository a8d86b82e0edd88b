import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createdText } from '../../console/pages/keys/rotation.ts'

test('a new key with rights on files comes with its pair for S3', () => {
  assert.equal(createdText({ key: 'rpa_1', s3: null }), 'rpa_1')
  const text = createdText({ key: 'rpa_1', s3: { accessKeyId: 'id', secretAccessKey: 'hush' } })
  assert.deepEqual(text.split('\n'), ['rpa_1', 'S3 access key: id', 'S3 secret key: hush'])
})
