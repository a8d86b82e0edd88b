/** Output of `runyard jobs story`. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { storyText } from '../../src/cli/terminal/story-text.ts'

test('each event is a line with its time and how long it took, and what is ahead says when', () => {
  const events = [
    { at: 1_000, until: 1_000, text: 'accepted' },
    { at: 1_000, until: 3_500, text: 'waited until a worker was free' },
    { at: 3_500, until: null, text: 'attempt 1 runs on worker w' },
    { at: 64_500, until: 64_500, text: 'its ttl\u001b[2J ends' },
  ]
  assert.deepEqual(storyText({ id: 'a-u1', status: 'IN_PROGRESS', events }, 4_500).split('\n'), [
    'job a-u1 is IN_PROGRESS',
    '1970-01-01 00:00:01.000          accepted',
    '1970-01-01 00:00:01.000    2.5s  waited until a worker was free',
    '1970-01-01 00:00:03.500      1s  attempt 1 runs on worker w',
    '1970-01-01 00:01:04.500          in 1m00s: its ttl ends',
    '',
  ])
})
