/** Search and filters of a log. */
import type { Worker } from '../../../client/api-types.d.ts'
import { count, plural } from '../../../format.ts'
import { Button, Choice } from '../../../parts/basic.tsx'
import { query, setQuery } from '../../../router.ts'
import { LEVELS, type Level } from './log-line.ts'
import { type LogSession, MAX_AHEAD } from './log-session.ts'
import { type LogFilter, searchPattern } from './log-view.ts'

/** Choices for the log in the query of the page, so that a link shows the same. */
export interface LogChoice {
  readonly worker: string | null
  /** Only the output of this job; null for all. */
  readonly job: string | null
  readonly from: string
  readonly text: string
  readonly filter: LogFilter
  /** Problem of the regular expression; null for none. */
  readonly problem: string | null
}

/** Start of the log, by its name in the query: a number of old lines, or minutes. */
export const BEGINNINGS: Readonly<
  Record<string, { readonly title: string; readonly tail?: number; readonly minutes?: number }>
> = {
  '': { title: 'Last 2,000 lines', tail: 2_000 },
  lines5000: { title: 'Last 5,000 lines', tail: 5_000 },
  min15: { title: 'Last 15 minutes', minutes: 15 },
  hour: { title: 'Last hour', minutes: 60 },
  all: { title: 'All stored lines', minutes: 60 * 24 * 365 },
  new: { title: 'Only new lines', tail: 0 },
}

/** The choice in the query of the page. */
export function logChoice(): LogChoice {
  const parameters = query.value
  const level = parameters.get('level') as Level | null
  const source = parameters.get('source')
  const text = parameters.get('q') ?? ''
  let search: RegExp | null = null
  let problem: string | null = null
  try {
    search = searchPattern(text, parameters.get('regex') === '1')
  } catch (error) {
    problem = (error as Error).message
  }
  return {
    worker: parameters.get('worker'),
    job: parameters.get('job'),
    from: Object.hasOwn(BEGINNINGS, parameters.get('from') ?? '') ? (parameters.get('from') ?? '') : '',
    text,
    problem,
    filter: {
      level: level !== null && LEVELS.includes(level) ? level : null,
      kind: source === 'output' || source === 'system' ? source : null,
      search,
      onlyMatches: parameters.get('only') === '1' && search !== null,
      context: Math.min(50, Math.max(0, Math.floor(Number(parameters.get('context')) || 0))),
    },
  }
}

/** The search, with buttons from match to match. */
export function LogSearch({
  choice,
  session,
  current,
  onStep,
}: {
  readonly choice: LogChoice
  readonly session: LogSession
  /** Number of the line with the selected match; null before the first. */
  readonly current: number | null
  readonly onStep: (by: 1 | -1) => void
}) {
  const { text, filter, problem } = choice
  void session.changes.value
  const matches = session.view.matchCount
  const at = current === null ? null : matchIndex(session, current)
  const hides = filter.onlyMatches || filter.level !== null
  return (
    <div class="tools log-tools" role="search" aria-label="Search in the log">
      <input
        type="search"
        data-search
        aria-label="Search, Enter for the next match"
        placeholder="Search"
        value={text}
        maxLength={500}
        aria-invalid={problem !== null}
        onInput={event => setQuery({ q: event.currentTarget.value })}
        onKeyDown={event => {
          if (event.key === 'Enter') onStep(event.shiftKey ? -1 : 1)
          else if (event.key === 'Escape') setQuery({ q: null })
        }}
      />
      <Toggle name="regex" title="Regular expression">
        .*
      </Toggle>
      {filter.search === null ? null : (
        <>
          <Button onPress={() => onStep(-1)} disabled={matches === 0} aria-label="Previous match">
            ↑
          </Button>
          <Button onPress={() => onStep(1)} disabled={matches === 0} aria-label="Next match">
            ↓
          </Button>
          <span class="log-count" role="status">
            {at === null || matches === 0
              ? plural(matches, 'match', 'matches')
              : `${count(at + 1)} of ${count(matches)}`}
          </span>
          <Toggle name="only">Only matches</Toggle>
        </>
      )}
      {hides ? (
        <Select
          name="context"
          label="Lines around each"
          options={[
            ['', 'No lines around'],
            ['2', '2 lines around'],
            ['5', '5 lines around'],
            ['20', '20 lines around'],
          ]}
        />
      ) : null}
      {problem === null ? null : (
        <span class="wrong" role="alert">
          {problem}
        </span>
      )}
    </div>
  )
}

function matchIndex({ view }: LogSession, number: number): number | null {
  const after = view.matchFrom(number - 1, 1)
  return after !== null && view.matchAt(after) === number ? after : null
}

/** Filters and display options of lines. */
export function LogFilters({
  choice,
  workers,
  isWrapped,
  isColored,
  onWrap,
  onColor,
}: {
  readonly choice: LogChoice
  readonly workers: readonly Pick<Worker, 'id' | 'phase'>[]
  readonly isWrapped: boolean
  readonly isColored: boolean
  readonly onWrap: () => void
  readonly onColor: () => void
}) {
  const isKnown = choice.worker === null || workers.some(({ id }) => id === choice.worker)
  return (
    <div class="tools log-tools">
      {choice.job === null ? null : (
        <Button onPress={() => setQuery({ job: null })} title="Show all lines again">
          ✕ Only job {choice.job}
        </Button>
      )}
      <Select
        name="worker"
        label="Worker"
        options={[
          ['', 'All workers'],
          ...(isKnown ? [] : [[choice.worker!, choice.worker!] as const]),
          ...workers.map(({ id, phase }) => [id, `${id} (${phase})`] as const),
        ]}
      />
      <Select
        name="level"
        label="Level"
        options={[
          ['', 'All levels'],
          ['error', 'Errors'],
          ['warn', 'Warnings and errors'],
          ['info', 'All but debug'],
        ]}
      />
      <Choice
        label="Source"
        value={choice.filter.kind ?? ''}
        options={[
          ['', 'All'],
          ['output', 'Output'],
          ['system', 'System'],
        ]}
        onChange={source => setQuery({ source })}
      />
      <Select
        name="from"
        label="Beginning"
        options={Object.entries(BEGINNINGS).map(([name, { title }]) => [name, title])}
      />
      <Button onPress={onWrap} aria-pressed={isWrapped}>
        {isWrapped ? '☑' : '☐'} Wrap
      </Button>
      <Button onPress={onColor} aria-pressed={isColored}>
        {isColored ? '☑' : '☐'} Colors
      </Button>
    </div>
  )
}

/** Pauses and resumes new lines. */
export function PauseButton({ session }: { readonly session: LogSession }) {
  const unseen = session.unseen.value
  const { is } = session.stream.value
  if (unseen === null)
    return is === 'ended' || is === 'failed' ? null : <Button onPress={() => session.pause()}>Pause</Button>
  const isHeld = is === 'held' && unseen > 0
  return (
    <Button kind="main" onPress={() => session.resume()}>
      {unseen === 0
        ? 'Resume'
        : `Resume (${isHeld ? `over ${count(Math.min(unseen, MAX_AHEAD))} new lines` : plural(unseen, 'new line')})`}
    </Button>
  )
}

function Toggle({
  name,
  title,
  children,
}: {
  readonly name: string
  readonly title?: string
  readonly children: string
}) {
  const isOn = query.value.get(name) === '1'
  return (
    <Button
      onPress={() => setQuery({ [name]: isOn ? null : '1' })}
      aria-pressed={isOn}
      {...(title === undefined ? {} : { title, 'aria-label': title })}
    >
      {isOn ? '☑' : '☐'} {children}
    </Button>
  )
}

function Select({
  name,
  label,
  options,
}: {
  readonly name: string
  readonly label: string
  readonly options: readonly (readonly [string, string])[]
}) {
  return (
    <select
      aria-label={label}
      value={query.value.get(name) ?? ''}
      onChange={event => setQuery({ [name]: event.currentTarget.value })}
    >
      {options.map(([value, title]) => (
        <option key={value} value={value}>
          {title}
        </option>
      ))}
    </select>
  )
}
