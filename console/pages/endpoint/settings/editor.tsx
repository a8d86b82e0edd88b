/** Changes an endpoint. Form and JSON are two views of one change, which is shown before it is saved. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { api, type Body as BodyOf } from '../../../client/api.ts'
import type { Endpoint } from '../../../client/api-types.d.ts'
import { who } from '../../../client/session.ts'
import { announce } from '../../../parts/announce.tsx'
import { Button, Choice, Code, Section } from '../../../parts/basic.tsx'
import { FormProblems, JsonField, jsonProblem } from '../../../parts/form.tsx'
import { type Body, isObject } from '../../endpoint-form/body.ts'
import { bound } from '../../endpoint-form/bound.tsx'
import { curlCommand } from '../../endpoint-form/curl.ts'
import { type Difference, differences, findConflicts, makesRelease } from '../../endpoint-form/difference.ts'
import {
  bodyFromDraft,
  changedBody,
  type Draft,
  draftFromBody,
  draftWith,
  merged,
  rebased,
} from '../../endpoint-form/draft.ts'
import { EndpointFields, FIELDS } from '../../endpoint-form/endpoint-fields.tsx'
import { repeatedNames } from '../../endpoint-form/env-text.ts'
import { DifferenceList, Folded, shownAt } from '../../endpoint-form/parts.tsx'
import { useChecked } from '../../endpoint-form/use-checked.ts'

type View = 'form' | 'json'

/** The form of an existing endpoint. */
export function Editor({ endpoint }: { readonly endpoint: Endpoint }) {
  const change = useChange(endpoint)
  const { before, draft, text, setDraft, setText, body, mine, view, show, theirs } = change
  const path = `/v2/serverless/${endpoint.id}`
  const { problems, isSending, send } = useChecked('PATCH', path, body ?? {})
  const set = (changes: Partial<Draft>) => setDraft({ ...draft, ...changes })
  const isChanged = body === null || Object.keys(body).length > 0
  const isReady = body !== null && isChanged && repeatedNames(draft.env).length === 0
  const save = async () => {
    const isRelease = makesRelease(mine)
    const isDone = await send(async () => {
      const answer = await api('PATCH /v2/serverless/{id}', {
        path: { id: endpoint.id },
        body: body as BodyOf<'PATCH /v2/serverless/{id}'>,
      })
      change.saved(answer)
    })
    if (isDone) announce(isRelease ? 'Saved as a new release. Its workers replace the others.' : 'Saved')
  }
  const submit = (event: Event) => {
    event.preventDefault()
    if (isReady && theirs.length === 0) void save()
  }
  return (
    <form class="form-page" onSubmit={submit} noValidate>
      <div>
        <p>
          <Choice<View>
            label="View"
            value={view}
            options={[
              ['form', 'Form'],
              ['json', 'JSON'],
            ]}
            onChange={show}
          />
        </p>
        {theirs.length > 0 && !isSending ? <Conflict change={change} /> : null}
        {text === null ? (
          <EndpointFields draft={draft} set={set} problems={problems} isNew={false} />
        ) : (
          <Section title="The configuration as JSON">
            <JsonField
              label="Configuration"
              rows={18}
              value={text}
              onChange={setText}
              hint="The members that you change are saved. Those that you remove stay as they are, single variables of env apart: env and lists are replaced."
            />
          </Section>
        )}
      </div>
      <div class="beside">
        <Section title={isChanged ? 'Changes' : 'No changes'}>
          <DifferenceList of={mine} label="Changes" names={['Now', 'After saving']} />
          <ChangeEffect mine={mine} />
          {makesRelease(mine) && text === null
            ? bound({ draft, set, problems }).number(
                'canary',
                'Try it on a share of the workers first, percent',
                [1, 99],
                {
                  path: 'rollout',
                  hint: 'Empty: all workers are replaced',
                },
              )
            : null}
          <FormProblems problems={problems} shown={text === null ? shownAt(problems, [...FIELDS, '$.rollout']) : []} />
          <div class="actions">
            <button type="submit" class="button main" disabled={!isReady || isSending || theirs.length > 0}>
              Save changes
            </button>
            {isChanged ? <Button onPress={() => change.begin(before)}>Discard</Button> : null}
          </div>
          {isChanged && body !== null ? (
            <Folded title="The same call">
              <Code text={curlCommand('PATCH', who.value!.server.url + path, body)} />
            </Folded>
          ) : null}
        </Section>
      </div>
    </form>
  )
}

/** The effect of a save on workers. */
function ChangeEffect({ mine }: { readonly mine: readonly Difference[] }) {
  if (mine.length === 0) return null
  return makesRelease(mine) ? (
    <p class="notice wait">This creates a new release: its workers replace those that run.</p>
  ) : (
    <p class="notice">Takes effect at once. No worker is replaced.</p>
  )
}

/** An unsaved change: somebody who looks at another tab finds it again. */
let unsaved: {
  readonly id: string
  readonly before: Draft
  readonly draft: Draft
  readonly text: string | null
} | null = null

/** A change in progress, and changes that others saved in the meantime. */
function useChange(endpoint: Endpoint) {
  const [resumed] = useState(unsaved?.id === endpoint.id ? unsaved : null)
  const [before, setBefore] = useState(() => resumed?.before ?? draftFromBody(endpoint))
  const [draft, setDraft] = useState(resumed?.draft ?? before)
  /** The JSON while somebody types it; null while the form is shown. */
  const [text, setText] = useState(resumed?.text ?? null)
  /** The state that the page still shows for a moment after a save. */
  const [old, setOld] = useState('')
  const latest = draftFromBody(endpoint)
  const latestText = JSON.stringify(latest)
  const now = bodyFromDraft(before)
  const body = text === null ? changedBody(before, draft) : changedMembers(now, parsed(text))
  const mine = body === null ? [] : differences(now, merged(now, body))
  const isIdle = body !== null && Object.keys(body).length === 0
  const leave = useRef(() => {})
  leave.current = () => {
    unsaved = isIdle ? null : { id: endpoint.id, before, draft, text }
  }
  useEffect(() => () => leave.current(), [])
  const isOld = latestText === old || isIdle
  const theirs = isOld ? [] : differences(now, bodyFromDraft(latest))
  const begin = (from: typeof before, changes: Body = {}) => {
    setBefore(from)
    const { draft: next } = draftWith(from, changes)
    setDraft(next)
    if (text !== null) setText(jsonOf(bodyFromDraft(from), changes))
  }
  useEffect(() => {
    if (latestText !== old) setOld('')
    if (isIdle && latestText !== old) begin(latest)
  }, [latestText])
  return {
    before,
    draft,
    text,
    setDraft,
    setText,
    body,
    mine,
    theirs,
    begin,
    view: (text === null ? 'form' : 'json') as View,
    show: (view: View) => {
      if (view === 'json') return text === null ? setText(jsonOf(now, body ?? {})) : undefined
      if (body === null) return announce('The JSON cannot be read.', 'problem')
      const { draft: next, unknown } = draftWith(before, body)
      if (unknown.length > 0) return announce(`The form has no field for ${unknown.join(', ')} as it is.`, 'problem')
      setDraft(next)
      setText(null)
    },
    saved: (answer: Endpoint) => {
      setOld(latestText)
      begin(draftFromBody(answer))
    },
    keepMine: () => begin(latest, rebased(now, body ?? {}, bodyFromDraft(latest))),
    takeTheirs: () => begin(latest),
  }
}

/** The whole configuration with the changes so far, for the text. */
function jsonOf(configuration: Body, changes: Body): string {
  return JSON.stringify(merged(configuration, changes), null, 2)
}

/** The members of a text that differ from the configuration; null for a text that cannot be read. */
function changedMembers(configuration: Body, typed: Body | null): Body | null {
  if (typed === null) return null
  const isSame = (name: string) => JSON.stringify(typed[name]) === JSON.stringify(configuration[name])
  return Object.fromEntries(Object.entries(typed).filter(([name]) => !isSame(name)))
}

function parsed(text: string): Body | null {
  if (jsonProblem(text) !== null) return null
  const value: unknown = JSON.parse(text)
  return isObject(value) ? value : null
}

/** Notice that somebody else saved the endpoint in the meantime. */
function Conflict({ change }: { readonly change: ReturnType<typeof useChange> }) {
  const { theirs, mine } = change
  const conflicts = findConflicts(mine, theirs)
  return (
    <div class="notice wait" role="alert">
      <div>
        <h2>Somebody else changed this endpoint in the meantime</h2>
        <DifferenceList of={theirs} label="Their changes" marked={conflicts} names={['Before', 'Now']} />
        <div class="actions">
          <Button onPress={change.keepMine}>
            {conflicts.length === 0 ? 'Keep both changes' : 'Keep my values where both changed'}
          </Button>
          <Button onPress={change.takeTheirs}>Drop my changes</Button>
        </div>
      </div>
    </div>
  )
}
