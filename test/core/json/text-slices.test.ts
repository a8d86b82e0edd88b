/** Long texts in slices are the same texts. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { textResponse } from '../../../src/api/surface.ts'
import { gatherSlices, SLICE_CHARACTERS } from '../../../src/core/json/text-slices.ts'

test('no slice is longer than it may be or cuts a character, and short texts come together', () => {
  const long = `x${'🙂'.repeat(SLICE_CHARACTERS)}`
  const texts = ['', 'a', 'b', long, 'c', 'ä'.repeat(SLICE_CHARACTERS), 'd']
  const slices = [...gatherSlices(texts)]
  assert.equal(slices.join(''), texts.join(''))
  assert.equal(slices[0], 'ab')
  for (const slice of slices) {
    assert.ok(slice.length <= SLICE_CHARACTERS + 1)
    assert.ok(slice.isWellFormed())
  }
  assert.deepEqual([...gatherSlices([])], [])
})

test('a long answer has its length in bytes, and every one of them', async () => {
  for (const parts of [['{}'], ['{"a":"', 'ä🙂'.repeat(SLICE_CHARACTERS), '"}']]) {
    const answer = textResponse(parts, { status: 200, headers: {} })
    const length = answer.headers.get('content-length')
    const text = await answer.text()
    assert.equal(text, parts.join(''))
    if (length !== null) assert.equal(Number(length), Buffer.byteLength(text))
  }
})
