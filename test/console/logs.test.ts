import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readAnsi } from '../../console/pages/endpoint/logs/ansi.ts'
import { LogBuffer, MAX_LINES } from '../../console/pages/endpoint/logs/log-buffer.ts'
import { findLevel, LineReader, type LogLine, notice } from '../../console/pages/endpoint/logs/log-line.ts'
import {
  findRanges,
  isHit,
  type LogFilter,
  LogView,
  MAX_SHOWN,
  searchPattern,
} from '../../console/pages/endpoint/logs/log-view.ts'
import { RowHeights } from '../../console/pages/endpoint/logs/row-heights.ts'
import { splitSegments } from '../../console/pages/endpoint/logs/segments.ts'

const ALL: LogFilter = { level: null, kind: null, search: null, onlyMatches: false, context: 0 }
const ESC = String.fromCharCode(27)

test('a buffer keeps the newest lines, and a line keeps its number', () => {
  const buffer = filled(MAX_LINES + 30_000)
  buffer.trim()
  assert.equal(buffer.first, 30_000)
  assert.equal(buffer.end, MAX_LINES + 30_000)
  assert.equal(buffer.get(29_999), undefined)
  assert.equal(buffer.get(30_000)!.text, 'line 30000')
  assert.equal(buffer.get(buffer.end - 1)!.text, 'line 129999')
})

test('a buffer has no room for 100,000 lines of 64 KiB', () => {
  const buffer = new LogBuffer()
  const raw = 'x'.repeat(64 * 1024)
  for (let at = 0; at < 3_000; at += 1) buffer.push(line({ raw, text: raw }))
  buffer.trim()
  assert.equal(buffer.end - buffer.first, 1_024)
})

test('a view shows what comes, what it finds, and forgets what the buffer lets go', () => {
  const buffer = filled(100)
  const view = openView(buffer, { ...ALL, search: searchPattern('9', false), onlyMatches: true })
  assert.deepEqual(shownRows(view), [9, 19, 29, 39, 49, 59, 69, 79, 89, 90, 91, 92, 93, 94, 95, 96, 97, 98, 99])
  for (let at = 100; at < MAX_LINES + 95; at += 1) buffer.push(line({ text: at < 110 ? `line ${at}` : 'other' }))
  buffer.trim()
  view.trim()
  assert.ok(view.advance(buffer.end, Number.POSITIVE_INFINITY))
  assert.deepEqual(shownRows(view), [95, 96, 97, 98, 99, 109])
  assert.equal(view.matchCount, 6)
  assert.equal(view.heights.count, 6)
})

test('a view that had no time goes on where it stopped', () => {
  const buffer = filled(1_000)
  const view = new LogView(buffer, ALL, Number.POSITIVE_INFINITY)
  assert.equal(view.advance(buffer.end, -1), false)
  assert.ok(view.count > 0 && view.count < 1_000)
  while (!view.advance(buffer.end, -1));
  assert.equal(view.count, 1_000)
})

test('context is shown once around matches, in order', () => {
  const buffer = filled(40)
  const view = openView(buffer, {
    ...ALL,
    search: searchPattern('line (10|13|30)$', true),
    onlyMatches: true,
    context: 2,
  })
  assert.deepEqual(shownRows(view), [8, 9, 10, 11, 12, 13, 14, 15, 28, 29, 30, 31, 32])
  assert.deepEqual(
    shownRows(view).filter(number => view.isContext(number)),
    [8, 9, 11, 12, 14, 15, 28, 29, 31, 32],
  )
  assert.equal(view.matchCount, 3)
})

test('a level shows what is as grave; lines without one count as info, those of the page are always shown', () => {
  const buffer = new LogBuffer()
  for (const level of ['debug', 'info', null, 'warn', 'error'] as const)
    buffer.push(line({ level, text: String(level) }))
  buffer.push(notice('no connection', 0))
  const shown = (level: LogFilter['level']) => shownRows(openView(buffer, { ...ALL, level }))
  assert.deepEqual(shown('error'), [4, 5])
  assert.deepEqual(shown('warn'), [3, 4, 5])
  assert.deepEqual(shown('info'), [1, 2, 3, 4, 5])
  assert.deepEqual(shown(null), [0, 1, 2, 3, 4, 5])
  assert.deepEqual(shownRows(openView(buffer, { ...ALL, kind: 'system' })), [5])
  assert.equal(isHit(line({ level: 'info' }), { ...ALL, level: 'warn' }), false)
})

test('next and previous go around the end', () => {
  const view = openView(filled(30), { ...ALL, search: searchPattern('5', false) })
  const step = (number: number, by: 1 | -1) => view.matchAt(view.matchFrom(number, by)!)
  assert.deepEqual([step(-1, 1), step(5, 1), step(15, 1), step(25, 1)], [5, 15, 25, 5])
  assert.deepEqual([step(5, -1), step(20, -1), step(15, -1)], [25, 15, 5])
  assert.equal(openView(filled(3), { ...ALL, search: searchPattern('none', false) }).matchFrom(0, 1), null)
})

test('text is searched as it is, an expression as one, and a wrong one says why', () => {
  assert.deepEqual(findRanges('a.b A.B axb', searchPattern('a.b', false)!), [
    { from: 0, to: 3 },
    { from: 4, to: 7 },
  ])
  assert.equal(findRanges('a.b A.B axb', searchPattern('a.b', true)!).length, 3)
  assert.deepEqual(findRanges('abc', searchPattern('x*', true)!), [])
  assert.equal(searchPattern('', true), null)
  assert.throws(() => searchPattern('(', true), SyntaxError)
})

test('colours become classes, and other control sequences go', () => {
  const { text, styles } = readAnsi(`${ESC}[1;31mred${ESC}[0m plain ${ESC}[48;5;21mback${ESC}[K${ESC}]0;title${ESC}\\!`)
  assert.equal(text, 'red plain back!')
  assert.deepEqual(styles, [
    { from: 0, to: 3, classes: 'ansi-bold ansi-1' },
    { from: 10, to: 14, classes: 'ansi-on-4' },
    { from: 14, to: 15, classes: 'ansi-on-4' },
  ])
  assert.deepEqual(readAnsi('plain'), { text: 'plain', styles: null })
  assert.equal(readAnsi(`${ESC}[38;2;255;0;0mx${ESC}[9999;mY${ESC}`).text, 'xY')
})

test('a line is cut where its colours and its matches begin and end', () => {
  const segments = splitSegments('abcdef', [{ from: 0, to: 4, classes: 'ansi-1' }], [{ from: 2, to: 5 }])
  assert.deepEqual(
    segments.map(({ text, classes, isMatch }) => [text, classes, isMatch]),
    [
      ['ab', 'ansi-1', false],
      ['cd', 'ansi-1', true],
      ['e', '', true],
      ['f', '', false],
    ],
  )
})

test('levels are found in the text, the first word first', () => {
  assert.equal(findLevel('2026-01-01 ERROR it broke'), 'error')
  assert.equal(findLevel('[warn] careful'), 'warn')
  assert.equal(findLevel('WARNING: retry after ERROR'), 'warn')
  assert.equal(findLevel('ts=1 level=debug msg=x'), 'debug')
  assert.equal(findLevel('INFO:root:done'), 'info')
  assert.equal(findLevel('Traceback (most recent call last):'), 'error')
  assert.equal(findLevel('torch.cuda.OutOfMemoryError: CUDA out of memory'), 'error')
  assert.equal(findLevel('no errors were found'), null)
  assert.equal(findLevel('informal debugging'), null)
})

test('JSON is shown as a sentence with its members, with its own level', () => {
  const reader = new LineReader()
  const read = (text: string, jobId: string | null = null) =>
    reader.read({ workerId: 'w', jobId, source: 'container', ts: '2026-01-01T00:00:00.123Z', line: text })
  const { text, level, raw, atMs } = read('{"level":"warning","time":1,"msg":"slow","ms":12,"at":{"x":1}}')
  assert.deepEqual([text, level], ['slow  ms=12  at={"x":1}', 'warn'])
  assert.equal(raw, '{"level":"warning","time":1,"msg":"slow","ms":12,"at":{"x":1}}')
  assert.equal(atMs, Date.parse('2026-01-01T00:00:00.123Z'))
  assert.equal(read('{"level":50,"msg":"pino"}').level, 'error')
  assert.equal(read('{"a":1}').text, '{"a":1}')
  assert.equal(read('{"msg": broken}').text, '{"msg": broken}')
  assert.equal(read('INFO {"level":"error","msg":"inner"}', 'job').level, 'error')
  assert.equal(read('INFO {"level":"error","msg":"inner"}', 'job').text, 'inner')
  assert.equal(read(`{"msg":"two\\nlines ${ESC}[31m"}`).text, 'two lines ')
})

test('the frames of a traceback have its level, each worker for itself', () => {
  const reader = new LineReader()
  const read = (workerId: string, text: string) =>
    reader.read({ workerId, jobId: null, source: 'container', ts: '2026-01-01T00:00:00Z', line: text }).level
  assert.equal(read('a', 'Traceback (most recent call last):'), 'error')
  assert.equal(read('b', '  indented'), null)
  assert.equal(read('a', '  File "x.py", line 1'), 'error')
  assert.equal(read('a', 'next'), null)
  assert.equal(read('a', '  indented'), null)
})

test('lines of the server about a worker are marked, and a crash is an error', () => {
  const reader = new LineReader()
  const read = (text: string) =>
    reader.read({ workerId: 'a', jobId: null, source: 'system', ts: '2026-01-01T00:00:00Z', line: text })
  assert.deepEqual([read('started after 5 ms').kind, read('started after 5 ms').level], ['system', 'info'])
  assert.equal(read('exited with code 3, after 1 finished job').level, 'error')
  assert.equal(read('exited with code 0').level, 'info')
  assert.equal(read('problem: it is stuck').level, 'warn')
})

test('rows of several lines of text are found without measuring', () => {
  const heights = new RowHeights(10)
  for (const width of [5, 25, 0, 10, 11]) heights.add(width)
  assert.equal(heights.total, 8)
  assert.deepEqual(
    [0, 1, 2, 3, 4].map(row => heights.rowTop(row)),
    [0, 1, 4, 5, 6],
  )
  assert.deepEqual(
    [0, 1, 3.5, 4, 7, 99].map(text => heights.rowAt(text)),
    [0, 1, 1, 2, 4, 4],
  )
  heights.drop(2)
  assert.deepEqual([heights.count, heights.total, heights.rowTop(0), heights.rowHeight(2)], [3, 4, 0, 2])
  assert.equal(heights.rowAt(0), 0)
})

test('wide characters and cut lines have room in wrapped rows', () => {
  const buffer = new LogBuffer()
  buffer.push(line({ text: '日本語日本語' }))
  buffer.push(line({ text: 'x'.repeat(60_000) }))
  const view = openView(buffer, ALL)
  view.wrap(10)
  assert.equal(view.heights.rowHeight(0), 2)
  assert.ok(view.heights.rowHeight(1) <= MAX_SHOWN / 10 + 3)
})

function filled(count: number): LogBuffer {
  const buffer = new LogBuffer()
  for (let at = 0; at < count; at += 1) buffer.push(line({ text: `line ${at}` }))
  return buffer
}

function line(members: Partial<LogLine>): LogLine {
  const base = {
    atMs: 0,
    workerId: 'w',
    jobId: null,
    kind: 'output',
    level: null,
    text: '',
    raw: '',
    styles: null,
  } as const
  return { ...base, ...members }
}

function openView(buffer: LogBuffer, filter: LogFilter): LogView {
  const view = new LogView(buffer, filter, Number.POSITIVE_INFINITY)
  assert.ok(view.advance(buffer.end, Number.POSITIVE_INFINITY))
  return view
}

function shownRows(view: LogView): number[] {
  return Array.from({ length: view.count }, (_, row) => view.numberAt(row)!)
}
