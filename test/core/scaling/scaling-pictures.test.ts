import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { drawPicture, PICTURES, SCALING_PICTURES } from '../../../scripts/scaling-pictures.ts'

for (const [name, picture] of Object.entries(SCALING_PICTURES)) {
  test(`the picture ${name} of the guide is what the rule does`, () => {
    const kept = readFileSync(new URL(name, PICTURES), 'utf8')
    assert.equal(kept, drawPicture(picture), 'run ./bin/node scripts/scaling-pictures.ts')
  })
}
