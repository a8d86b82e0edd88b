import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { SETTINGS } from '../../src/config/config.ts'

const page = readFileSync(new URL('../../docs/reference/settings.md', import.meta.url), 'utf8')

test('every setting is a row of the page of settings, with its variable', () => {
  const rows = new Set(page.split('\n').map(line => line.split('|', 3).slice(1).join('|')))
  const missing = Object.values(SETTINGS).filter(
    ({ flag, variable }) => !rows.has(` \`${flag}\` | \`RUNYARD_${variable}\` `),
  )
  assert.deepEqual(
    missing.map(({ flag }) => flag),
    [],
  )
})

test('the page of settings lists only existing options', () => {
  const shown = [...page.matchAll(/^\| `(--[a-z-]+)` \| `RUNYARD_/gm)].map(([, flag]) => flag)
  const known = Object.values(SETTINGS).map(({ flag }) => flag)
  assert.deepEqual(
    shown.filter(flag => !known.includes(flag!)),
    [],
  )
})
