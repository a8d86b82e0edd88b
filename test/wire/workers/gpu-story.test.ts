/** The script for a machine with a real card, on a card of the driver library for tests. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { FakeGpus, noFakeGpus } from '../../support/fake-gpus.ts'
import { patient } from '../../support/patience.ts'
import { temporaryFolder } from '../support/cleanup.ts'
import { skip } from '../support/python.ts'
import { root } from '../support/server.ts'

test('its chapters on urgent jobs and on learned shares run to their end', {
  skip: noFakeGpus || skip,
  timeout: patient(120_000),
}, async t => {
  const gpus = new FakeGpus(t, { gbps: 20, cardMib: 8_192 })
  const out = temporaryFolder()
  const script = join(root, 'scripts/gpu-story.ts')
  const story = promisify(execFile)(process.execPath, [script, 'run', root, 'pause', 'auto'], {
    env: { ...gpus.env, OUT: out },
    signal: t.signal,
  })
  await story.catch(() => {})
  const { fake, chapters } = JSON.parse(readFileSync(join(out, 'gpu-story.json'), 'utf8'))
  const ends = chapters.map(({ chapter, state, problem }: Record<string, string>) => [chapter, state, problem])
  assert.deepEqual(
    [fake, ends],
    [
      true,
      [
        ['pause', 'done', undefined],
        ['auto', 'done', undefined],
      ],
    ],
  )
})
