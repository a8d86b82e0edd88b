import assert from 'node:assert/strict'
import { test } from 'node:test'
import { equalSecrets } from '../../src/core/equal-secrets.ts'

test('secrets are equal when each character is', () => {
  for (const [a, b, isEqual] of [
    ['', '', true],
    ['rpa_abc', 'rpa_abc', true],
    ['rpa_abc', 'rpa_abd', false],
    ['xpa_abc', 'rpa_abc', false],
    ['rpa_ab', 'rpa_abc', false],
    ['\u{1f511}', '\u{1f512}', false],
  ] as const)
    assert.equal(equalSecrets(a, b), isEqual, `${a} ${b}`)
})
