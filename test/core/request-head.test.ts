import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withSingleSlashes } from '../../src/core/request-head.ts'

test('repeated slashes of a path are one, and nothing else changes', () => {
  const cases: readonly [string, string][] = [
    ['/v2/e1/run', '/v2/e1/run'],
    ['//v2///e1//run//', '/v2/e1/run/'],
    ['//', '/'],
    ['/v2//e1?next=http://a//b', '/v2/e1?next=http://a//b'],
    ['/v2/e1?a=//', '/v2/e1?a=//'],
    ['http://host//v2//e1?a=//', 'http://host/v2/e1?a=//'],
    ['HTTPS://host', 'HTTPS://host'],
    ['http://host?a//b', 'http://host?a//b'],
    ['/v2/%2F%2F/\\\\', '/v2/%2F%2F/\\\\'],
    ['*', '*'],
    ['', ''],
  ]
  for (const [given, expected] of cases) assert.equal(withSingleSlashes(given), expected, given)
  const long = `${'/'.repeat(1_000_000)}a`
  assert.equal(withSingleSlashes(long), '/a')
})
