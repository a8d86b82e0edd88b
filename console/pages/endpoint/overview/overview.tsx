/** The first view of an endpoint: its problems, its addresses, and its workers. */

import { useState } from 'preact/hooks'
import { api } from '../../../client/api.ts'
import type { Endpoint, Worker } from '../../../client/api-types.d.ts'
import { useResource } from '../../../client/resource.ts'
import { mayManage, mayUseJobs, who } from '../../../client/session.ts'
import { jobTopic, workerTopic } from '../../../client/topics.ts'
import { count, plural } from '../../../format.ts'
import { Ago, Choice, Code, Copy, Loaded, Section, State, type Tone } from '../../../parts/basic.tsx'
import { Meter } from '../../../parts/spark.tsx'
import { useReleases, Why } from '../../../parts/why.tsx'
import { serverNow } from '../../../server-clock.ts'
import { Failures } from './failures.tsx'
import { listAddresses, listSnippets, type Snippet } from './snippets.ts'
import { WhatIf } from './what-if.tsx'

/** The first tab of an endpoint. */
export function Overview({ endpoint }: { readonly endpoint: Endpoint }) {
  const { id, type } = endpoint
  const mayRead = mayUseJobs('read', id)
  return (
    <>
      {mayRead ? <Why id={id} /> : null}
      {mayRead ? <Failures endpoint={endpoint} /> : null}
      <div class="columns called">
        <div>
          <CallSnippets endpoint={endpoint} />
        </div>
        <div>
          <Workers endpoint={endpoint} />
          {mayRead && type === 'QUEUE' ? <Errors id={id} /> : null}
        </div>
      </div>
      {type === 'QUEUE' ? <WhatIf endpoint={endpoint} /> : null}
    </>
  )
}

const CHOSEN = 'runyard.snippet'

function CallSnippets({ endpoint }: { readonly endpoint: Endpoint }) {
  const snippets = listSnippets(endpoint, who.value!.server.queueUrl)
  const [id, setId] = useState(localStorage.getItem(CHOSEN) ?? 'curl')
  const shownSnippet = snippets.find(snippet => snippet.id === id) ?? snippets[0]!
  const choose = (chosen: Snippet['id']) => {
    localStorage.setItem(CHOSEN, chosen)
    setId(chosen)
  }
  return (
    <Section
      title="Call it"
      actions={
        <Choice
          label="Language"
          value={shownSnippet.id}
          options={snippets.map(snippet => [snippet.id, snippet.title] as const)}
          onChange={choose}
        />
      }
    >
      <p class="hint">
        {shownSnippet.install === null ? null : (
          <>
            Install it with <code>{shownSnippet.install}</code>.{' '}
          </>
        )}
        <code>RUNYARD_API_KEY</code> is a <a href="/keys">key</a> of yours.
      </p>
      <Code text={shownSnippet.text} what="program" />
      <h3>Addresses</h3>
      <dl class="addresses">
        {listAddresses(endpoint, who.value!.server.queueUrl).map(({ name, method, url }) => (
          <div key={name}>
            <dt>
              {name} {method === null ? null : <small>{method}</small>}
            </dt>
            <dd>
              <code>{url}</code>
              <Copy text={url} what={`address of ${name}`} />
            </dd>
          </div>
        ))}
      </dl>
    </Section>
  )
}

const STATES: Readonly<Record<Worker['status'], readonly [Tone, string]>> = {
  RUNNING: ['busy', 'running'],
  IDLE: ['good', 'idle'],
  INITIALIZING: ['wait', 'starting'],
  THROTTLED: ['off', 'waiting for a place'],
  UNHEALTHY: ['bad', 'unhealthy'],
}
const MAX_DOTS = 40

function Workers({ endpoint: { id, type, workers: allowed } }: { readonly endpoint: Endpoint }) {
  const workers = useResource(
    mayManage('read') ? `workers ${id}` : null,
    signal => api('GET /v2/serverless/{id}/workers', { path: { id }, signal }),
    { on: workerTopic(id), everyMs: 15_000 },
  )
  return (
    <Section title="Workers" actions={<a href={`/endpoints/${id}/workers`}>All workers</a>}>
      <Loaded of={workers}>
        {({ workers: all }) =>
          all.length === 0 ? (
            <p class="faint">
              No worker runs.
              {allowed.max > 0
                ? ` The next ${type === 'QUEUE' ? 'job' : 'request'} starts one.`
                : ' None may start: workers at most is 0.'}
            </p>
          ) : (
            <ul class="worker-dots" aria-label="Workers">
              {all.slice(0, MAX_DOTS).map(worker => (
                <WorkerDot key={worker.id} id={id} worker={worker} />
              ))}
              {all.length > MAX_DOTS ? <li class="faint">and {count(all.length - MAX_DOTS)} more</li> : null}
            </ul>
          )
        }
      </Loaded>
      <Rollout id={id} />
    </Section>
  )
}

function WorkerDot({ id, worker }: { readonly id: string; readonly worker: Worker }) {
  const { status, phase, phaseSince, jobsHeld, version, isStale, pullPercent } = worker
  const [tone, word] = phase === 'frozen' ? (['frozen', 'frozen'] as const) : STATES[status]
  const pulled = pullPercent === null ? '' : ` ${Math.round(pullPercent)}%`
  const does = phase === 'ready' || phase === 'frozen' ? word : `${phase}${pulled}`
  return (
    <li>
      <a href={`/endpoints/${id}/workers?worker=${worker.id}`} title={worker.reason ?? undefined}>
        <State tone={tone}>{does}</State>
        <span class="faint">
          {jobsHeld > 0 ? `${plural(jobsHeld, 'job')} · ` : ''}
          <Ago at={phaseSince} />
          {isStale ? ` · release ${version}` : ''}
        </span>
      </a>
    </li>
  )
}

/** Progress of a rollout or a canary; nothing if all workers run the newest release. */
function Rollout({ id }: { readonly id: string }) {
  const { data } = useReleases(id)
  if (data === null || data.rollout.state === 'COMPLETE') return null
  const { state, workersOnLatest, workersTotal, reason, workingVersion, canary } = data.rollout
  const newest = data.releases[0]?.version ?? '?'
  const says =
    state === 'CANARY'
      ? `Release ${newest} is a canary with ${canary}% of the workers`
      : state === 'STOPPED'
        ? `The rollout of release ${newest} has stopped; release ${workingVersion} goes on`
        : `Release ${newest} is being rolled out`
  return (
    <div class="rollout">
      <p>
        <State tone={state === 'STOPPED' ? 'bad' : 'busy'}>{says}</State>
      </p>
      <p class="faint">
        <Meter share={workersTotal === 0 ? 0 : workersOnLatest / workersTotal} label={`Workers of release ${newest}`} />{' '}
        {workersOnLatest} of {plural(workersTotal, 'worker')} run it. <a href={`/endpoints/${id}/releases`}>Releases</a>
      </p>
      {reason === null || state === 'STOPPED' ? null : <p class="faint">{reason}</p>}
    </div>
  )
}

const MAX_GROUPS = 5
const DAY_MS = 86_400_000

/** The errors of the last day. */
function Errors({ id }: { readonly id: string }) {
  const errors = useResource(
    `errors ${id}`,
    signal =>
      api('GET /v2/{endpoint}/errors', {
        path: { endpoint: id },
        query: { from: new Date(serverNow() - DAY_MS).toISOString() },
        signal,
      }),
    { on: event => jobTopic(id)(event) && (event.to === 'FAILED' || event.to === 'TIMED_OUT') },
  )
  return (
    <Section
      title="Errors of the last day"
      actions={<a href={`/endpoints/${id}/requests?status=FAILED,TIMED_OUT`}>Failed requests</a>}
    >
      <Loaded of={errors}>
        {({ groups }) =>
          groups.length === 0 ? (
            <p class="faint">No job has failed.</p>
          ) : (
            <ul class="errors">
              {groups.slice(0, MAX_GROUPS).map(({ fingerprint, error, count: times, lastAt }) => (
                <li key={fingerprint}>
                  <a href={`/endpoints/${id}/requests?fingerprint=${encodeURIComponent(fingerprint)}`}>{error}</a>
                  <span class="faint">
                    {plural(times, 'job')}, last <Ago at={lastAt} suffix=" ago" />
                  </span>
                </li>
              ))}
              {groups.length > MAX_GROUPS ? (
                <li>
                  <a href={`/endpoints/${id}/requests?status=FAILED,TIMED_OUT`}>
                    and {groups.length - MAX_GROUPS} more
                  </a>
                </li>
              ) : null}
            </ul>
          )
        }
      </Loaded>
    </Section>
  )
}
