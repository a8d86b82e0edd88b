/** The estimated cost of other settings beside that of today's, with the button that applies them. */
import { useEffect, useState } from 'preact/hooks'
import { api } from '../../../client/api.ts'
import type { WhatIf as Answer, Endpoint, UpdateEndpointRequest } from '../../../client/api-types.d.ts'
import { mayManage } from '../../../client/session.ts'
import { count, duration, money } from '../../../format.ts'
import { announce } from '../../../parts/announce.tsx'
import { Button, Section } from '../../../parts/basic.tsx'
import { FormProblems, SelectField, TextField, useSending } from '../../../parts/form.tsx'
import { ChangeDialog } from '../../../parts/why.tsx'
import { comparisonRows, differences } from './comparison.ts'
import { bodyFromDraft, type Draft, draftFromEndpoint, listChanges, queryFromDraft } from './draft.ts'

/** The form and the figures of both settings. */
export function WhatIf({ endpoint }: { readonly endpoint: Endpoint }) {
  const [draft, setDraft] = useState<Draft>(() => draftFromEndpoint(endpoint))
  const [answer, setAnswer] = useState<{ readonly of: Draft; readonly figures: Answer } | null>(null)
  const [isAsked, setAsked] = useState(false)
  const { problems, isSending, send } = useSending()
  const today = draftFromEndpoint(endpoint)
  const saved = JSON.stringify(today)
  useEffect(() => {
    setDraft(draftFromEndpoint(endpoint))
    setAnswer(null)
  }, [saved])
  const compare = () =>
    send(async () => {
      const figures = await api('GET /v2/serverless/{id}/whatif', {
        path: { id: endpoint.id },
        query: queryFromDraft(today, draft),
      })
      setAnswer({ of: draft, figures })
    })
  const field = (name: keyof Draft) => ({
    value: draft[name],
    onChange: (value: string) => setDraft({ ...draft, [name]: value }),
  })
  const changes = listChanges(today, draft)
  return (
    <Section title="Cost of other settings">
      <p class="hint">
        Replays the jobs of the last 30 days with the settings below and with those of today. It changes nothing.
      </p>
      <form
        class="what-if"
        onSubmit={event => {
          event.preventDefault()
          void compare()
        }}
      >
        <TextField label="Workers at least" type="number" {...field('workersMin')} />
        <TextField label="Workers at most" type="number" {...field('workersMax')} />
        <TextField label="Idle timeout (s)" type="number" {...field('idleTimeout')} />
        <SelectField
          label="Scaler"
          {...field('scalerType')}
          value={draft.scalerType}
          options={[
            ['QUEUE_DELAY', 'Queue delay'],
            ['REQUEST_COUNT', 'Request count'],
          ]}
        />
        <TextField
          label={draft.scalerType === 'QUEUE_DELAY' ? 'Queue delay (s)' : 'Requests a worker'}
          type="number"
          {...field('scalerValue')}
        />
        <SelectField
          label="Flashboot"
          {...field('flashBootType')}
          value={draft.flashBootType}
          options={[
            ['OFF', 'Off'],
            ['FLASHBOOT', 'Flashboot'],
            ['PRIORITY_FLASHBOOT', 'Priority'],
          ]}
        />
        <div class="field">
          <button type="submit" class="button" disabled={isSending}>
            {isSending ? 'Playing…' : 'Compare'}
          </button>
        </div>
      </form>
      <FormProblems problems={problems} shown={[]} />
      <div aria-live="polite">
        {answer === null ? null : (
          <Figures answer={answer.figures} isChanged={listChanges(today, answer.of).length > 0} />
        )}
      </div>
      {changes.length > 0 && mayManage('write') ? (
        <Button kind="main" onPress={() => setAsked(true)}>
          Use these settings
        </Button>
      ) : null}
      {isAsked ? (
        <ChangeDialog
          title="Use these settings"
          changes={changes}
          says={
            today.flashBootType === draft.flashBootType
              ? 'This takes effect at once. Running workers continue.'
              : 'Flashboot creates a new release: new workers replace the present ones.'
          }
          onConfirm={async () => {
            await applyDraft(endpoint.id, bodyFromDraft(today, draft))
            setAsked(false)
          }}
          onClose={() => setAsked(false)}
        />
      ) : null}
    </Section>
  )
}

async function applyDraft(id: string, body: UpdateEndpointRequest): Promise<void> {
  await api('PATCH /v2/serverless/{id}', { path: { id }, body })
  announce('The settings are changed')
}

function Figures({ answer, isChanged }: { readonly answer: Answer; readonly isChanged: boolean }) {
  const { today, other, recorded, assumed, notes } = answer
  if (today === null) return <p>{notes.join(' ') || 'There are no jobs to replay yet.'}</p>
  const shownFigures = other ?? today
  return (
    <>
      {isChanged ? (
        <ul class="differences">
          {differences(today, shownFigures).map(text => (
            <li key={text}>{text}</li>
          ))}
        </ul>
      ) : null}
      <table class="changes">
        <thead>
          <tr>
            <th scope="col">{count(recorded.attempts)} jobs</th>
            <th scope="col">Settings of today</th>
            {isChanged ? <th scope="col">These settings</th> : null}
          </tr>
        </thead>
        <tbody>
          {comparisonRows(today, shownFigures).map(row => (
            <tr key={row.name}>
              <th scope="row">{row.name}</th>
              <td>{row.today}</td>
              {isChanged ? (
                <td>
                  <b>{row.other}</b>
                </td>
              ) : null}
            </tr>
          ))}
        </tbody>
      </table>
      <p class="hint">
        A worker starts in {duration(assumed.startMs)}, runs {assumed.concurrency} at once and costs{' '}
        {money(assumed.pricePerHour)} an hour ({assumed.hardware}). {notes.join(' ')}
      </p>
    </>
  )
}
