/** Why something waits or is wrong: the sentence, what shows it, what to do, and the button that does it. */
import { effect, signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useId, useState } from 'preact/hooks'
import { api, sentenceOf } from '../client/api.ts'
import type {
  Endpoint,
  EndpointExplanation,
  JobExplanation,
  ListEndpointReleasesResponse,
} from '../client/api-types.d.ts'
import { type Resource, useResource } from '../client/resource.ts'
import { mayManage, mayOperate, who } from '../client/session.ts'
import { ofEndpoint } from '../client/topics.ts'
import { clockTime, count, now } from '../format.ts'
import { Ago, Button, Code, Failure, State, type Tone } from './basic.tsx'
import { Dialog } from './dialog.tsx'
import {
  advice,
  type CauseTone,
  type Change,
  changesBack,
  isPassing,
  type Mend,
  type MendFacts,
  mendsOf,
  mendsOfNote,
  type Needs,
  noteText,
  sentence,
  titleOf,
  toneOf,
  workersMax,
} from './mend.ts'

/** The explanation of an endpoint, or of one of its jobs. */
export type Explanation = (EndpointExplanation | JobExplanation) & { readonly jobs?: EndpointExplanation['jobs'] }

/** What is said may have changed without an event: it counts seconds. */
const AGAIN_MS = 5_000
/** Shorter waits are not shown: the page would jump with each job. */
const PASSING_MS = 2_000
const TONES: Readonly<Record<CauseTone, Tone>> = { bad: 'bad', wait: 'wait', busy: 'busy', good: 'good' }

/** Reads why an endpoint, or one of its jobs, waits. */
export function useExplanation(id: string, jobId?: string): Resource<Explanation> {
  return useResource<Explanation>(
    `explain ${id} ${jobId ?? ''}`,
    signal =>
      jobId === undefined
        ? api('GET /v2/{endpoint}/explain', { path: { endpoint: id }, signal })
        : api('GET /v2/{endpoint}/explain/{job}', { path: { endpoint: id, job: jobId }, signal }),
    { on: ofEndpoint(id), everyMs: AGAIN_MS },
  )
}

/** Reads the releases of an endpoint, as far as the key may. */
export function useReleases(id: string): Resource<ListEndpointReleasesResponse> {
  return useResource<ListEndpointReleasesResponse>(
    mayManage('read') ? `releases ${id}` : null,
    signal => api('GET /v2/serverless/{id}/releases', { path: { id }, signal }),
    { on: event => event.endpointId === id && /^(?:endpoint|rollout|change)\./.test(event.type) },
  )
}

function useFacts(id: string, explained: Explanation): MendFacts {
  const endpoint = useResource<Endpoint>(
    mayManage('read') ? `endpoint ${id}` : null,
    signal => api('GET /v2/serverless/{id}', { path: { id }, signal }),
    { on: event => event.endpointId === id && /^(?:endpoint|change)\./.test(event.type) },
  )
  return { id, explained, endpoint: endpoint.data, releases: useReleases(id).data }
}

/** Explains an endpoint, or one of its jobs, where there is something to explain. */
export function Why({ id, jobId }: { readonly id: string; readonly jobId?: string }) {
  const { data, error, reload } = useExplanation(id, jobId)
  if (data === null) return error === null ? null : <Failure error={error} retry={reload} />
  return <WhyPanel id={id} explained={data} />
}

/** Whether an explanation says more than that all is well. */
function hasNews(explained: Explanation): boolean {
  const { cause, notes, jobs } = explained
  if (cause === 'finished') return false
  if (notes.length === 0 && isPassing(explained, PASSING_MS, now.value)) return false
  // A paused endpoint of a server refuses requests, so none waits.
  return (
    notes.length > 0 ||
    cause === 'paused' ||
    toneOf(cause) === 'bad' ||
    (jobs === undefined ? cause !== 'running' : jobs.inQueue > 0)
  )
}

/** An explanation that was read. @param level of its heading */
export function WhyPanel({ id, explained }: { readonly id: string; readonly explained: Explanation }) {
  const facts = useFacts(id, explained)
  const heading = useId()
  useNews(id, explained)
  const { cause, summary, action, sinceMs, notes, commands } = explained
  const tone = toneOf(cause)
  if (!hasNews(explained)) return <Next id={id} isAlone />
  const mends = mendsOf(facts)
  return (
    <section class={`why ${tone}`} aria-labelledby={heading}>
      <header>
        <h2 id={heading}>
          <State tone={TONES[tone]}>{titleOf(cause)}</State>
        </h2>
        {sinceMs === null ? null : (
          <span class="faint">
            began <Ago at={sinceMs} suffix=" ago" />
          </span>
        )}
      </header>
      <p class="why-says">{sentence(summary)}</p>
      {action === null ? null : (
        <p>
          <b>What to do:</b> {advice(action)}
        </p>
      )}
      <Mends facts={facts} mends={mends} hasMain />
      <Evidence cause={cause} lines={explained.evidence.filter(line => line === '' || !summary.includes(line))} />
      {notes.map(note => (
        <div key={note} class="why-note">
          <p>{noteText(note)}</p>
          <Mends
            facts={facts}
            mends={mendsOfNote(note, facts).filter(({ title }) => mends.every(mend => mend.title !== title))}
          />
        </div>
      ))}
      {commands.length === 0 ? null : (
        <details>
          <summary>On the command line</summary>
          <Code text={commands.join('\n')} what="commands" />
        </details>
      )}
      <Next id={id} />
    </section>
  )
}

/** The main action of an explanation alone, for a list. */
export function MainMend({ id, explained }: { readonly id: string; readonly explained: Explanation }) {
  const facts = useFacts(id, explained)
  useNews(id, explained)
  return <Mends facts={facts} mends={mendsOf(facts).filter(isAllowed).slice(0, 1)} hasMain />
}

/** Causes whose evidence is what a worker printed. */
const PRINTED = /^(?:crash_loop|out_of_memory|fitness_failed|hung_start|never_healthy|rollout_stopped)$/

function Evidence({ cause, lines }: { readonly cause: string; readonly lines: readonly string[] }) {
  if (lines.length === 0) return null
  if (!PRINTED.test(cause)) {
    return (
      <ul class="why-facts">
        {lines.map(line => (
          <li key={line}>{line}</li>
        ))}
      </ul>
    )
  }
  return (
    <>
      <h3>What the last worker printed</h3>
      <Code text={lines.join('\n')} what="output" />
    </>
  )
}

const ALLOWED: Readonly<Record<Needs, () => boolean>> = {
  read: () => true,
  write: () => mayManage('write'),
  operate: mayOperate,
}

function isAllowed(mend: Mend): boolean {
  return ALLOWED[mend.kind === 'link' ? mend.needs : 'write']()
}

/** Buttons and links that mend something; those that the key may not use are not shown. */
function Mends({
  facts,
  mends,
  hasMain = false,
}: {
  readonly facts: MendFacts
  readonly mends: readonly Mend[]
  readonly hasMain?: boolean
}) {
  const [asked, setAsked] = useState<Mend | null>(null)
  const allowed = mends.filter(isAllowed)
  const isMending = (mend: Mend) => mend.kind !== 'link' || mend.needs !== 'read'
  const kind = (index: number) => (hasMain && index === 0 && isMending(allowed[0]!) ? 'main' : 'plain')
  if (allowed.length === 0) return null
  return (
    <div class="mends">
      {allowed.map((mend, index) =>
        mend.kind === 'link' ? (
          <a key={mend.title} class={`button ${kind(index)}`} href={mend.href}>
            {mend.title}
          </a>
        ) : (
          <Button
            key={mend.title}
            kind={kind(index)}
            onPress={() => (mend.kind === 'restart' ? carryOut(facts, mend) : setAsked(mend))}
          >
            {mend.title}
          </Button>
        ),
      )}
      {asked === null ? null : <Asked facts={facts} mend={asked} onClose={() => setAsked(null)} />}
    </div>
  )
}

/** Asks before a change, and shows what it changes. */
function Asked({
  facts,
  mend,
  onClose,
}: {
  readonly facts: MendFacts
  readonly mend: Mend
  readonly onClose: () => void
}) {
  const given = mend.kind === 'patch' ? mend.body.workers?.max : undefined
  const [max, setMax] = useState(String(given ?? ''))
  const chosen = given === undefined || !/^\d{1,4}$/.test(max) ? mend : workersMax(facts, Number(max))
  const confirm = async () => {
    await carryOut(facts, chosen)
    onClose()
  }
  return (
    <ChangeDialog
      title={chosen.title}
      changes={chosen.kind === 'patch' ? chosen.changes : versionChanges(facts, chosen)}
      says={consequence(chosen)}
      onConfirm={confirm}
      onClose={onClose}
    >
      {given === undefined ? null : (
        <label class="field">
          Workers at most
          <input type="number" min="1" max="1000" value={max} onInput={event => setMax(event.currentTarget.value)} />
        </label>
      )}
    </ChangeDialog>
  )
}

function versionChanges({ releases }: MendFacts, mend: Mend): readonly Change[] {
  return mend.kind === 'rollback' ? changesBack(releases, mend.version) : []
}

function consequence(mend: Mend): string {
  if (mend.kind === 'rollback')
    return `This makes a new release with the configuration of release ${mend.version}. It can be taken back in the same way.`
  if (mend.kind === 'promote') return `Workers of release ${mend.version} replace the others.`
  if (mend.kind === 'patch' && mend.isRelease) return 'This makes a new release: new workers replace the present ones.'
  return 'This takes effect at once. Workers that run go on.'
}

const MAX_VALUE = 160

/** Asks before a change of the configuration, and shows the settings that change. */
export function ChangeDialog({
  title,
  changes,
  says,
  onConfirm,
  onClose,
  children,
}: {
  readonly title: string
  readonly changes: readonly Change[]
  readonly says: string
  readonly onConfirm: () => Promise<unknown>
  readonly onClose: () => void
  readonly children?: ComponentChildren
}) {
  const [problem, setProblem] = useState<string | null>(null)
  const confirm = () => onConfirm().catch((error: unknown) => setProblem(sentenceOf(error)))
  const value = (text: string) => (text.length > MAX_VALUE ? `${text.slice(0, MAX_VALUE)}…` : text)
  return (
    <Dialog
      title={title}
      onClose={onClose}
      actions={
        <>
          <Button onPress={onClose}>Leave it as it is</Button>
          <Button kind="main" onPress={confirm}>
            {title}
          </Button>
        </>
      }
    >
      {children}
      {changes.length === 0 ? null : (
        <table class="changes">
          <thead>
            <tr>
              <th scope="col">Setting</th>
              <th scope="col">Now</th>
              <th scope="col">Then</th>
            </tr>
          </thead>
          <tbody>
            {changes.map(({ name, from, to }) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td>{value(from)}</td>
                <td>
                  <b>{value(to)}</b>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <p class="hint">{says}</p>
      {problem === null ? null : (
        <p class="notice bad" role="alert">
          {problem}
        </p>
      )}
    </Dialog>
  )
}

async function carryOut({ id, explained }: MendFacts, mend: Mend): Promise<void> {
  switch (mend.kind) {
    case 'patch':
      await api('PATCH /v2/serverless/{id}', { path: { id }, body: mend.body })
      break
    case 'rollback':
    case 'promote':
      await api(`POST /v2/serverless/{id}/releases/{version}/${mend.kind}`, {
        path: { id, version: String(mend.version) },
      })
      break
    case 'restart':
      await api('POST /v2/serverless/{id}/restart', { path: { id } })
  }
  const step = { atMs: Date.now(), text: `Done: ${mend.title}`, tone: 'good' } as const
  mended.value = {
    ...mended.value,
    [id]: { steps: [step], from: explained.cause, last: newsKey(explained), hasMoved: false },
  }
}

interface News {
  readonly steps: readonly { readonly atMs: number; readonly text: string; readonly tone: Tone }[]
  /** The cause that was mended. */
  readonly from: string
  /** What was said last, without its numbers, which count seconds. */
  readonly last: string
  readonly hasMoved: boolean
}

/** What has happened since somebody mended an endpoint, by its id; in the words of the server. */
export const mended = signal<Readonly<Record<string, News>>>({})
const MAX_STEPS = 12

// The next session may be of another account.
effect(() => {
  if (who.value == null) mended.value = {}
})

function newsKey({ cause, summary }: { readonly cause: string; readonly summary: string }): string {
  return `${cause} ${summary.replaceAll(/\d+/g, '')}`
}

/** Notes what is said after an endpoint was mended, until its jobs move. */
function useNews(id: string, explained: Explanation): void {
  const key = newsKey(explained)
  useEffect(() => {
    const told = mended.value[id]
    if (told === undefined || told.hasMoved || told.last === key) return
    const { cause, summary, jobs } = explained
    const tone = toneOf(cause)
    const runs = jobs === undefined ? cause === 'running' : jobs.inProgress > 0
    const hasMoved = tone === 'good' || (runs && tone !== 'bad' && cause !== told.from)
    const text = hasMoved ? `Jobs move again: ${movedText(jobs)}` : sentence(summary)
    const steps = [...told.steps, { atMs: Date.now(), text, tone: hasMoved ? ('good' as const) : TONES[tone] }]
    mended.value = { ...mended.value, [id]: { ...told, steps: steps.slice(-MAX_STEPS), last: key, hasMoved } }
  }, [id, key])
}

function movedText(jobs: Explanation['jobs']): string {
  if (jobs === undefined) return 'the job moves'
  if (jobs.inProgress + jobs.inQueue === 0) return 'nothing waits any more'
  return `${count(jobs.inProgress)} running, ${count(jobs.inQueue)} waiting`
}

/** What happens after an endpoint was mended. */
export function Next({ id, isAlone = false }: { readonly id: string; readonly isAlone?: boolean }) {
  const told = mended.value[id]
  if (told === undefined) return null
  const Heading = isAlone ? 'h2' : 'h3'
  const dismiss = () => {
    const { [id]: _, ...others } = mended.value
    mended.value = others
  }
  return (
    <div class={isAlone ? 'why good' : 'why-next'}>
      <header>
        <Heading>{told.hasMoved ? 'Mended' : 'What happens now'}</Heading>
        <Button kind="quiet" onPress={dismiss} aria-label="Dismiss what happened">
          ✕
        </Button>
      </header>
      <ol class="why-steps" aria-live="polite">
        {told.steps.map(({ atMs, text, tone }) => (
          <li key={atMs}>
            <time class="faint">{clockTime(atMs).slice(0, -4)}</time>
            <State tone={tone}>{text}</State>
          </li>
        ))}
      </ol>
    </div>
  )
}
