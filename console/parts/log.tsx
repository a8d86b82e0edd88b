/** The output for a job or of a task, live while it goes on. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { ApiError, errorSentence, request } from '../client/api.ts'
import { Backoff, pause, readEvents } from '../client/event-source.ts'
import { clockTime, count } from '../format.ts'

interface Line {
  readonly ts: string
  readonly line: string
}

interface Lines {
  readonly lines: readonly Line[]
  readonly isCut: boolean
  readonly note: string | null
  /** True if lines are no longer kept. */
  readonly isLost: boolean
  readonly state: Reading
  readonly problem: string | null
}

/** State of the reading: before its lines, while more may follow, and after the last one. */
type Reading = 'reading' | 'open' | 'ended'

/** Limit of shown lines, the newest: a stream begins with as many. */
export const MAX_LINES = 1_000
/** Time in milliseconds after which new lines are drawn together, since they arrive in bursts. */
const DRAW_AFTER_MS = 100

/** Silence after the begin of an answer from which on it has no old lines, in milliseconds. */
const SILENT_MS = 3_000

/** Sentence in the place of lines. */
const NO_LINES: Readonly<Record<Reading, (whose: string) => string>> = {
  reading: () => 'Reading the output…',
  open: whose => `Nothing was printed ${whose} so far.`,
  ended: whose => `Nothing was printed ${whose}.`,
}
const WHOSE = { job: 'for this job', task: 'by this task' } as const

/**
 * The lines of a log that ends.
 * @param path address of the stream, which begins with the newest lines
 */
export function Log({ path, what }: { readonly path: string; readonly what: 'job' | 'task' }) {
  const { lines, isCut, note, isLost, state, problem } = useLines(path)
  const box = useRef<HTMLDivElement>(null)
  const isAtEnd = useRef(true)
  useEffect(() => {
    if (isAtEnd.current) box.current?.scrollTo(0, box.current.scrollHeight)
  }, [lines])
  return (
    <>
      {note === null ? null : <p class="hint">{note}</p>}
      {problem === null ? null : <p class="wrong">{problem}</p>}
      {isCut ? <p class="hint">The last {count(MAX_LINES)} lines.</p> : null}
      {lines.length === 0 ? (
        // The note says which lines are no longer kept.
        isLost && state !== 'reading' ? null : (
          <p class={`faint${state === 'reading' ? ' loading' : ''}`}>{NO_LINES[state](WHOSE[what])}</p>
        )
      ) : (
        <div
          class="job-log mono"
          ref={box}
          tabIndex={0}
          role="log"
          aria-label={`Log of the ${what}`}
          aria-live="off"
          onScroll={({ currentTarget: { scrollTop, clientHeight, scrollHeight } }) => {
            isAtEnd.current = scrollTop + clientHeight >= scrollHeight - 20
          }}
        >
          {lines.map(({ ts, line }, at) => (
            <div key={at}>
              <time dateTime={ts}>{clockTime(ts)}</time> {line}
            </div>
          ))}
        </div>
      )}
    </>
  )
}

const NO_LINES_READ: Lines = { lines: [], isCut: false, note: null, isLost: false, state: 'reading', problem: null }

function useLines(path: string): Lines {
  const [shown, setShown] = useState<Lines>(NO_LINES_READ)
  useEffect(() => {
    const end = new AbortController()
    let pendingLines: Line[] = []
    let timer: ReturnType<typeof setTimeout> | null = null
    let silence: number | null = null
    const draw = () => {
      timer = null
      const newLines = pendingLines
      pendingLines = []
      setShown(previous => {
        const lines = [...previous.lines, ...newLines]
        return { ...previous, lines: lines.slice(-MAX_LINES), isCut: previous.isCut || lines.length > MAX_LINES }
      })
    }
    const add = (line: Line) => {
      pendingLines.push(line)
      timer ??= setTimeout(draw, DRAW_AFTER_MS)
    }
    const say = (part: Partial<Lines>) => setShown(previous => ({ ...previous, ...part }))
    const opened = () => {
      silence ??= setTimeout(
        () => setShown(shown => (shown.state === 'ended' ? shown : { ...shown, state: 'open' })),
        SILENT_MS,
      )
    }
    void follow(path, add, say, opened, end.signal)
    return () => {
      end.abort()
      if (silence !== null) clearTimeout(silence)
      if (timer !== null) clearTimeout(timer)
    }
  }, [path])
  return shown
}

/** Reads lines until the end of the log; resumes after a lost connection. */
async function follow(
  path: string,
  add: (line: Line) => void,
  say: (part: Partial<Lines>) => void,
  opened: () => void,
  signal: AbortSignal,
): Promise<void> {
  const backoff = new Backoff()
  let lastId: string | null = null
  while (!signal.aborted) {
    try {
      const headers: Record<string, string> = { accept: 'text/event-stream' }
      if (lastId !== null) headers['last-event-id'] = lastId
      const response = await request('GET', path, { headers, signal })
      say({ problem: null })
      opened()
      for await (const { name, data, id } of readEvents(response)) {
        backoff.reset()
        lastId = id ?? lastId
        if (name === 'end') return say({ state: 'ended' })
        if (name === 'note') {
          const { text, lost = false } = JSON.parse(data) as { text: string; lost?: boolean }
          say({ note: text, isLost: lost })
        } else add(readLine(data))
      }
    } catch (error) {
      if (signal.aborted) return
      say({ problem: errorSentence(error) })
      if (error instanceof ApiError && !error.isPassing) return
    }
    await pause(backoff.next(), signal)
  }
}

/** Colors of terminals, which are removed (ECMA-48, CSI sequences). */
const COLORS = new RegExp(`${String.fromCharCode(27)}\\[[0-9;]*[A-Za-z]`, 'g')

function readLine(data: string): Line {
  const { ts, line } = JSON.parse(data) as Line
  return { ts, line: line.replaceAll(COLORS, '').slice(0, 10_000) }
}
