import assert from 'node:assert/strict'
import { test } from 'node:test'
import { refusalText } from '../../src/cli/client/connection.ts'

test('what the server says against a request is shown once', () => {
  const [port, path] = ['env: the variable PORT must be a port', 'env: the variable HEALTH_CHECK_PATH must be a path']
  const text = (said: object) => refusalText(said, 'it answered 400')
  assert.equal(text({ detail: port, errors: [port] }), port)
  assert.equal(
    text({ detail: `${port}; ${path}`, errors: [port, path] }),
    `the request is refused:\n  ${port}\n  ${path}`,
  )
  assert.equal(text({ detail: 'Validation failed.', errors: [port] }), `Validation failed.\n  ${port}`)
  assert.equal(text({ error: 'the API key is missing' }), 'the API key is missing')
  assert.equal(text({}), 'it answered 400')
})
