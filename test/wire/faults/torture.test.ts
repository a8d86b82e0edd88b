/** The torture run that anyone can repeat (scripts/torture.ts), at a sixth of its size. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { describe, test } from 'node:test'
import { patient } from '../../support/patience.ts'
import { noPostgres, postgresUrl } from '../../support/postgres-database.ts'
import { atExit } from '../support/cleanup.ts'
import { python, skip } from '../support/python.ts'
import { root } from '../support/server.ts'

const LIMIT_MS = 540_000

// Each run has its own server and mostly waits.
describe('accepted means kept', { concurrency: 2 }, () => {
  test('hundreds of jobs on official Python workers while the server is killed every second, three times', {
    skip,
    timeout: patient(600_000),
  }, async () => {
    const { code, output, value } = await torture([
      '--worker',
      'python',
      '--python',
      python,
      '--jobs',
      '150',
      '--kills',
      '3',
      '--minutes',
      '8',
    ])
    assert.equal(code, 0, output)
    assert.deepEqual(
      ['jobs acknowledged', 'kills of the server', 'ends reported by webhooks', 'missing'].map(value),
      [150, 3, 150, 0],
      output,
    )
    assert.equal(value('completed') + value('failed after 3 lost attempts'), 150, output)
    assert.ok(value('attempts') >= 150, output)
  })

  test('the same on PostgreSQL, smaller', { skip: noPostgres }, async () => {
    const size = ['--jobs', '100', '--kills', '2']
    const { code, output, value } = await torture(['--worker', 'node', '--database', postgresUrl, ...size])
    assert.equal(code, 0, output)
    assert.deepEqual(['jobs acknowledged', 'kills of the server', 'missing'].map(value), [100, 2, 0], output)
  })

  test('workers that are frozen and thawed while the server is killed, and new versions are released', async () => {
    const size = ['--freezes', '10', '--workers', '6']
    const { code, output, value } = await torture(['--worker', 'node', ...size])
    assert.equal(code, 0, output)
    assert.equal(value('missing'), 0, output)
    assert.ok(value('thaws of workers') >= 10, output)
    assert.ok(value('stops in the process table') >= 5, output)
    assert.ok(value('kills of the server') >= 1, output)
    assert.equal(value('jobs with more than one attempt'), 0, output)
    assert.equal(value('completed') + value('failed after 3 lost attempts'), value('jobs acknowledged'), output)
  })

  test('a wrong argument gets a message', async () => {
    const { code, output } = await torture(['--kills', 'many'])
    assert.equal(code, 64)
    assert.equal(output, "torture: --kills must be a whole number from 0 to 1000, not 'many'\n")
  })
})

/** Runs the script; `value` gives the number of a line of its report. */
async function torture(args: readonly string[]) {
  const child = spawn(process.execPath, [`${root}/scripts/torture.ts`, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  const takeBack = atExit(() => child.kill('SIGTERM'))
  const patience = setTimeout(() => child.kill('SIGTERM'), patient(LIMIT_MS))
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text))
  const code = await new Promise<number | null>(resolve => child.on('close', resolve))
  clearTimeout(patience)
  takeBack()
  const value = (name: string) =>
    Number(
      output
        .split('\n')
        .find(line => line.trimStart().startsWith(name))
        ?.replace(name, ''),
    )
  return { code, output, value }
}
