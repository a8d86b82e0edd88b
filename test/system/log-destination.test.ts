import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LogDestination, type MissingLines } from '../../src/system/observing/log-destination.ts'

/** A destination that takes what a test lets it take. */
function opened() {
  const state = { room: Number.POSITIVE_INFINITY, code: 'ENOSPC', written: '', nowMs: 0 }
  const said: MissingLines[] = []
  const timers: { ms: number; callback: () => void }[] = []
  const destination: LogDestination = new LogDestination({
    write(bytes) {
      if (state.room === 0) throw Object.assign(new Error('write'), { code: state.code })
      const taken = Math.min(state.room, bytes.byteLength)
      state.room -= taken
      state.written += Buffer.from(bytes.subarray(0, taken)).toString()
      return taken
    },
    after: (ms, callback) => timers.push({ ms, callback }),
    now: () => state.nowMs,
    resumed(missing) {
      said.push(missing)
      destination.write(`MISSING ${missing.lines}\n`)
    },
  })
  const pass = () => {
    const due = timers.splice(0)
    state.nowMs += Math.max(0, ...due.map(({ ms }) => ms))
    for (const { callback } of due) callback()
    return due.map(({ ms }) => ms)
  }
  return { destination, state, said, timers, pass, lines: () => state.written.split('\n').slice(0, -1) }
}

const line = (n: number) => `line ${String(n).padStart(5, '0')} ${'x'.repeat(1_000)}\n`

test('a line of which only a part can be written is finished later, and the next ones follow it', () => {
  const { destination, state, pass, lines } = opened()
  state.room = 8
  destination.write('the first line\n')
  destination.write('the second line\n')
  assert.equal(state.written, 'the firs')
  pass()
  assert.equal(state.written, 'the firs')
  state.room = Number.POSITIVE_INFINITY
  pass()
  destination.write('the third line\n')
  assert.deepEqual(lines(), ['the first line', 'the second line', 'the third line'])
  assert.equal(destination.dropped, 0)
})

test('lines that wait have a limit; later ones are counted, and the gap says how many they were and why', () => {
  const { destination, state, said, pass, lines } = opened()
  state.room = 0
  for (let n = 0; n < 5_000; n += 1) destination.write(line(n))
  const { dropped } = destination
  assert.ok(dropped > 3_900 && dropped < 4_000, `${dropped}`)
  assert.deepEqual(said, [])
  state.room = Number.POSITIVE_INFINITY
  pass()
  destination.write(line(5_000))
  assert.deepEqual(
    said.map(({ lines, problem }) => [lines, problem]),
    [[dropped, 'the disk is full']],
  )
  const kept = lines().map(text => text.replace(/ x+$/, ''))
  assert.deepEqual(kept.slice(-3), [
    `line ${String(4_999 - dropped).padStart(5, '0')}`,
    `MISSING ${dropped}`,
    'line 05000',
  ])
  assert.equal(destination.dropped, dropped)
})

test('a reader that reads slowly gets whole lines with one note for a gap, not one for each line that found room', () => {
  const { destination, state, said, pass, lines } = opened()
  state.code = 'EAGAIN'
  for (let n = 0; n < 6_000; n += 1) {
    if (n % 10 === 0) {
      state.room = 3_000
      pass()
    }
    destination.write(line(n))
  }
  state.room = Number.POSITIVE_INFINITY
  while (pass().length > 0);
  assert.ok(said.length > 1 && said.length < 30, `${said.length} notes`)
  assert.ok(said.every(({ problem }) => problem === 'its reader did not read'))
  const found = lines()
  assert.ok(found.every(text => /^(?:line \d{5} x{1000}|MISSING \d+)$/.test(text)))
  const written = found.filter(text => text.startsWith('line')).length
  assert.equal(written + destination.dropped, 6_000)
  assert.equal(
    said.reduce((sum, { lines: missing }) => sum + missing, 0),
    destination.dropped,
  )
})

test('a failed write is retried more and more rarely, never at each line, and not for ever', () => {
  const { destination, state, timers, pass } = opened()
  state.room = 0
  for (let n = 0; n < 100; n += 1) destination.write(line(n))
  assert.equal(timers.length, 1)
  const pauses = Array.from({ length: 12 }, () => pass()[0]!)
  assert.deepEqual([pauses[0], pauses[1], pauses.at(-1)], [20, 40, 1_000])
})

test('the end of the process writes what waits, as far as there is room', () => {
  const { destination, state } = opened()
  state.room = 0
  destination.write('one\n')
  state.room = 2
  destination.end()
  assert.equal(state.written, 'on')
})
