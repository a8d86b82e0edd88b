/** Lists on a terminal of 80 columns, with names and ids of ordinary length. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { beforeEach, mock, test } from 'node:test'
import { RESOURCE_COLUMNS } from '../../src/cli/terminal/resource-columns.ts'
import { table } from '../../src/cli/terminal/table.ts'
import { LIST_SAMPLES, LISTED_AT } from '../support/list-rows.ts'

const NOW = 1_800_000_000_000
const HOUR_AGO = new Date(NOW - 3_600_000 - 500).toISOString()

beforeEach(() => {
  mock.timers.reset()
  mock.timers.enable({ apis: ['Date'], now: NOW })
})

function list(name: keyof typeof RESOURCE_COLUMNS, ...rows: Record<string, unknown>[]): string[] {
  return table(RESOURCE_COLUMNS[name], rows, Number.POSITIVE_INFINITY).trimEnd().split('\n')
}

test('endpoints are shown with their hardware in words', () => {
  const workers = { min: 0, max: 3 }
  const gpu = { pools: ['ADA_24'], count: 2 }
  const lines = list(
    'endpoints',
    { id: 'mymodel', name: 'my-model', type: 'QUEUE', workers, gpu, image: 'me/worker:1' },
    {
      id: 'page',
      name: 'page',
      type: 'LOAD_BALANCER',
      workers,
      cpu: [{ id: 'cpu3g', vcpuCount: 2 }],
      image: 'dir:page',
    },
  )
  assert.deepEqual(lines, [
    'ID       NAME      TYPE   WORKERS  HARDWARE      IMAGE',
    'mymodel  my-model  QUEUE  0-3      2x ADA_24     me/worker:1',
    'page     page      LB     0-3      2 vCPU cpu3g  dir:page',
  ])
})

test('keys are shown with how long they are valid, and when they were used', () => {
  const key = { id: 'acfa26ca-3b51-4283-8522-2fa8b7a39152', hint: 'rpa_yQkg', scope: { type: 'all' }, disabled: false }
  const soon = new Date(NOW + 15 * 60_000 + 500).toISOString()
  const lines = list(
    'keys',
    { ...key, name: 'main', expiresAt: null, lastUsedAt: HOUR_AGO },
    { ...key, name: 'page', expiresAt: soon, lastUsedAt: null },
    { ...key, name: 'old', expiresAt: HOUR_AGO, lastUsedAt: null },
    { ...key, name: 'off', disabled: true, expiresAt: null, lastUsedAt: null },
  )
  assert.deepEqual(
    lines.map(line => line.slice(38)),
    [
      'NAME  KEY       SCOPE  VALID     USED',
      'main  rpa_yQkg  all    yes       60m',
      'page  rpa_yQkg  all    in 15m    -',
      'old   rpa_yQkg  all    expired   -',
      'off   rpa_yQkg  all    disabled  -',
    ],
  )
})

test('releases are shown with what they changed', () => {
  const lines = list('releases', {
    version: 2,
    createdAt: HOUR_AGO,
    workerCount: 1,
    diff: [{ field: 'image' }, { field: 'env.A' }],
  })
  assert.deepEqual(lines, ['VERSION  AGE  WORKERS  CHANGED', '2        60m  1        image, env.A'])
})

test('each list fits a terminal of 80 columns and is as the page of commands shows it', () => {
  mock.timers.setTime(LISTED_AT)
  const page = readFileSync(new URL('../../docs/reference/commands.md', import.meta.url), 'utf8')
  const blocks = LIST_SAMPLES.map(({ command, columns, rows }) => `$ ${command}\n${table(columns, rows, 80)}`)
  for (const block of blocks) {
    const wide = block.split('\n').filter(line => line.length > 80)
    assert.deepEqual(wide, [])
  }
  const missing = blocks.filter(block => !page.includes(block))
  assert.deepEqual(missing.join('\n'), '')
})
