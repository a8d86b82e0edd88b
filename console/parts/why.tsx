/** The explanation of a wait or a problem: the sentence, its facts, its actions, and a button for each. */

import { effect, signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useId, useState } from 'preact/hooks'
import { api, errorSentence } from '../client/api.ts'
import type { EndpointExplanation, JobExplanation, ListEndpointReleasesResponse } from '../client/api-types.d.ts'
import { type Resource, useResource } from '../client/resource.ts'
import { mayManage, mayOperate, who } from '../client/session.ts'
import { endpointTopic } from '../client/topics.ts'
import { clockTime, count } from '../format.ts'
import { now, serverNow } from '../server-clock.ts'
import {
  type Action,
  actionBody,
  actionChanges,
  actionHref,
  type Change,
  findNeeds,
  fittingActions,
  isLook,
  type Needs,
  withWorkersMax,
} from './actions.ts'
import { Ago, Button, Code, Failure, State, type Tone } from './basic.tsx'
import { type CauseTone, causeTitle, causeTone, isPassing, isPrinted, sentence } from './cause.ts'
import { Dialog } from './dialog.tsx'

/** The explanation of an endpoint, or of one of its jobs. */
export type Explanation = (EndpointExplanation | JobExplanation) & { readonly jobs?: EndpointExplanation['jobs'] }

/** Interval of reads: a sentence that counts seconds changes without an event. */
const AGAIN_MS = 5_000
/** Shorter waits are not shown: the page would jump with each job. */
const PASSING_MS = 2_000
const TONES: Readonly<Record<CauseTone, Tone>> = { bad: 'bad', wait: 'wait', busy: 'busy', good: 'good' }

/** Reads the reason why an endpoint, or one of its jobs, waits. */
export function useExplanation(id: string, jobId?: string): Resource<Explanation> {
  return useResource<Explanation>(
    `explain ${id} ${jobId ?? ''}`,
    signal =>
      jobId === undefined
        ? api('GET /v2/{endpoint}/explain', { path: { endpoint: id }, signal })
        : api('GET /v2/{endpoint}/explain/{job}', { path: { endpoint: id, job: jobId }, signal }),
    { on: endpointTopic(id), everyMs: AGAIN_MS },
  )
}

/** Reads the releases of an endpoint, if the key may. */
export function useReleases(id: string): Resource<ListEndpointReleasesResponse> {
  return useResource<ListEndpointReleasesResponse>(
    mayManage('read') ? `releases ${id}` : null,
    signal => api('GET /v2/serverless/{id}/releases', { path: { id }, signal }),
    { on: event => event.endpointId === id && /^(?:endpoint|rollout|change)\./.test(event.type) },
  )
}

/** Explains an endpoint, or one of its jobs, unless all is well. */
export function Why({ id, jobId }: { readonly id: string; readonly jobId?: string }) {
  const { data, error, reload } = useExplanation(id, jobId)
  if (data === null) return error === null ? null : <Failure error={error} retry={reload} />
  return <WhyPanel id={id} explained={data} />
}

/** True if an explanation says more than that all is well. */
function hasNews(explained: Explanation): boolean {
  const { cause, notes, jobs } = explained
  if (cause === 'finished') return false
  if (notes.length === 0 && isPassing(explained, PASSING_MS, now.value)) return false
  // A paused endpoint of a server refuses requests, so none waits.
  return (
    notes.length > 0 ||
    cause === 'paused' ||
    causeTone(cause) === 'bad' ||
    // Workers that are to be kept ready may wait for room although no job waits.
    (jobs === undefined ? cause !== 'running' : jobs.inQueue > 0 || causeTone(cause) === 'wait')
  )
}

/** An explanation that was read. @param level of its heading */
export function WhyPanel({ id, explained }: { readonly id: string; readonly explained: Explanation }) {
  const heading = useId()
  useNews(id, explained)
  const { cause, summary, action, sinceMs, notes, commands } = explained
  const tone = causeTone(cause)
  if (!hasNews(explained)) return <Next id={id} isAlone />
  return (
    <section class={`why ${tone}`} aria-labelledby={heading}>
      <header>
        <h2 id={heading}>
          <State tone={TONES[tone]}>{causeTitle(cause)}</State>
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
          <b>Next step:</b> {action}
        </p>
      )}
      <Actions id={id} explained={explained} note={null} />
      <Evidence cause={cause} lines={explained.evidence.filter(line => line === '' || !summary.includes(line))} />
      {notes.map((note, index) => (
        <div key={note} class="why-note">
          <p>{sentence(note)}</p>
          <Actions id={id} explained={explained} note={index} />
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
export function MainAction({ id, explained }: { readonly id: string; readonly explained: Explanation }) {
  useNews(id, explained)
  return <Actions id={id} explained={explained} note={null} most={1} />
}

function Evidence({ cause, lines }: { readonly cause: string; readonly lines: readonly string[] }) {
  if (lines.length === 0) return null
  if (!isPrinted(cause)) {
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
      <h3>Output of the last worker</h3>
      <Code text={lines.join('\n')} what="output" />
    </>
  )
}

const ALLOWED: Readonly<Record<Needs, () => boolean>> = {
  read: () => true,
  write: () => mayManage('write'),
  operate: mayOperate,
}

function isAllowed(action: Action): boolean {
  const needs = findNeeds(action)
  return needs !== null && ALLOWED[needs]()
}

/**
 * Buttons and links for the actions of a cause or of a note, without those that the key may not use.
 * @param most largest number of them
 */
function Actions({
  id,
  explained,
  note,
  most,
}: {
  readonly id: string
  readonly explained: Explanation
  readonly note: number | null
  readonly most?: number
}) {
  const [chosenAction, setChosenAction] = useState<Action | null>(null)
  const allowed = fittingActions(explained, note).filter(isAllowed).slice(0, most)
  const kind = (index: number) => (note === null && index === 0 && !isLook(allowed[0]!) ? 'main' : 'plain')
  if (allowed.length === 0) return null
  return (
    <div class="why-actions">
      {allowed.map((action, index) => {
        const { title } = action
        const href = actionHref(action, id)
        if (href !== null)
          return (
            <a key={title} class={`button ${kind(index)}`} href={href}>
              {title}
            </a>
          )
        const press = () => (action.kind === 'restart' ? runAction(id, explained, action) : setChosenAction(action))
        return (
          <Button key={title} kind={kind(index)} onPress={press}>
            {title}
          </Button>
        )
      })}
      {chosenAction === null ? null : (
        <ActionDialog id={id} explained={explained} action={chosenAction} onClose={() => setChosenAction(null)} />
      )}
    </div>
  )
}

interface ActionDialogProps {
  readonly id: string
  readonly explained: Explanation
  readonly action: Action
  readonly onClose: () => void
}

/** Asks before a change and shows it, or shows the command to run elsewhere. */
function ActionDialog(props: ActionDialogProps) {
  const { action, onClose } = props
  if (action.kind !== 'run' && action.kind !== 'download') return <ConfirmDialog {...props} />
  return (
    <Dialog title={action.title} onClose={onClose} actions={<Button onPress={onClose}>Close</Button>}>
      <p>
        {action.kind === 'run' && action.place === 'server' ? 'On the machine of the server:' : 'On the command line:'}
      </p>
      <Code text={action.command ?? ''} what="command" />
    </Dialog>
  )
}

function ConfirmDialog({ id, explained, action, onClose }: ActionDialogProps) {
  const releases = useReleases(id).data
  const isMax = action.kind === 'set' && action.field === 'workers.max'
  const [max, setMax] = useState(isMax ? String(action.value) : '')
  const chosen = isMax && /^\d{1,4}$/.test(max) ? withWorkersMax(action, Number(max)) : action
  const confirm = async () => {
    await runAction(id, explained, chosen)
    onClose()
  }
  return (
    <ChangeDialog
      title={chosen.title}
      changes={actionChanges(chosen, releases)}
      says={consequence(chosen)}
      onConfirm={confirm}
      onClose={onClose}
    >
      {isMax ? (
        <label class="field">
          Workers at most
          <input type="number" min="1" max="1000" value={max} onInput={event => setMax(event.currentTarget.value)} />
        </label>
      ) : null}
    </ChangeDialog>
  )
}

function consequence(action: Action): string {
  if (action.kind === 'rollback')
    return `This creates a new release with the configuration of release ${action.version}. It can be undone in the same way.`
  if (action.kind === 'promote') return `Workers of release ${action.version} replace the others.`
  if (action.kind === 'set' && action.isRelease)
    return 'This creates a new release: new workers replace the present ones.'
  return 'This takes effect at once. Running workers continue.'
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
  const confirm = () => onConfirm().catch((error: unknown) => setProblem(errorSentence(error)))
  const value = (text: string) => (text.length > MAX_VALUE ? `${text.slice(0, MAX_VALUE)}…` : text)
  return (
    <Dialog
      title={title}
      onClose={onClose}
      actions={
        <>
          <Button onPress={onClose}>Keep it unchanged</Button>
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

async function runAction(id: string, explained: Explanation, action: Action): Promise<void> {
  switch (action.kind) {
    case 'set':
      await api('PATCH /v2/serverless/{id}', { path: { id }, body: actionBody(action) })
      break
    case 'rollback':
    case 'promote':
      await api(`POST /v2/serverless/{id}/releases/{version}/${action.kind}`, {
        path: { id, version: String(action.version) },
      })
      break
    case 'restart':
      await api('POST /v2/serverless/{id}/restart', { path: { id } })
  }
  const step = { atMs: serverNow(), text: `Done: ${action.title}`, tone: 'good' } as const
  fixReports.value = {
    ...fixReports.value,
    [id]: { steps: [step], from: explained.cause, last: fixKey(explained), hasMoved: false },
  }
}

interface FixReport {
  readonly steps: readonly { readonly atMs: number; readonly text: string; readonly tone: Tone }[]
  /** The cause that was fixed. */
  readonly from: string
  /** The cause and its start that were shown last. */
  readonly last: string
  readonly hasMoved: boolean
}

/** Explanations since somebody fixed an endpoint, by its id; in the words of the server. */
export const fixReports = signal<Readonly<Record<string, FixReport>>>({})
const MAX_STEPS = 12

// The next session may belong to another account.
effect(() => {
  if (who.value == null) fixReports.value = {}
})

function fixKey({ cause, sinceMs }: Explanation): string {
  return `${cause} ${sinceMs}`
}

/** Stores each new explanation after a fix of an endpoint, until its jobs move. */
function useNews(id: string, explained: Explanation): void {
  const key = fixKey(explained)
  useEffect(() => {
    const news = fixReports.value[id]
    if (news === undefined || news.hasMoved || news.last === key) return
    const { cause, summary, jobs } = explained
    const tone = causeTone(cause)
    const runs = jobs === undefined ? cause === 'running' : jobs.inProgress > 0
    const hasMoved = tone === 'good' || (runs && tone !== 'bad' && cause !== news.from)
    const text = hasMoved ? `Jobs move again: ${movedText(jobs)}` : sentence(summary)
    const steps = [...news.steps, { atMs: serverNow(), text, tone: hasMoved ? ('good' as const) : TONES[tone] }]
    fixReports.value = {
      ...fixReports.value,
      [id]: { ...news, steps: steps.slice(-MAX_STEPS), last: key, hasMoved },
    }
  }, [id, key])
}

function movedText(jobs: Explanation['jobs']): string {
  if (jobs === undefined) return 'the job moves'
  if (jobs.inProgress + jobs.inQueue === 0) return 'nothing waits'
  return `${count(jobs.inProgress)} running, ${count(jobs.inQueue)} waiting`
}

/** The explanations that followed a fix of an endpoint. */
export function Next({ id, isAlone = false }: { readonly id: string; readonly isAlone?: boolean }) {
  const news = fixReports.value[id]
  if (news === undefined) return null
  const Heading = isAlone ? 'h2' : 'h3'
  const dismiss = () => {
    const { [id]: _, ...otherReports } = fixReports.value
    fixReports.value = otherReports
  }
  return (
    <div class={isAlone ? 'why good' : 'why-next'}>
      <header>
        <Heading>{news.hasMoved ? 'Fixed' : 'Progress'}</Heading>
        <Button kind="quiet" onPress={dismiss} aria-label="Dismiss the progress">
          ✕
        </Button>
      </header>
      <ol class="why-steps" aria-live="polite">
        {news.steps.map(({ atMs, text, tone }) => (
          <li key={atMs}>
            <time class="faint">{clockTime(atMs).slice(0, -4)}</time>
            <State tone={tone}>{text}</State>
          </li>
        ))}
      </ol>
    </div>
  )
}
