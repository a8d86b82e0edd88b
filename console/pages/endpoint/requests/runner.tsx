/** Runs a job from the page, and shows its output as it arrives. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { Endpoint } from '../../../client/api-types.d.ts'
import { who } from '../../../client/session.ts'
import { count, duration, plural } from '../../../format.ts'
import { Button, Choice, Code, Section } from '../../../parts/basic.tsx'
import { CheckField, Field, TextField } from '../../../parts/form.tsx'
import { OutputView } from '../../../parts/output/output.tsx'
import { setQuery } from '../../../router.ts'
import { readError } from './job-error.ts'
import { JobLink, JobState } from './job-parts.tsx'
import { LargeValue } from './large-value.tsx'
import { keepInput, lastInputs } from './last-inputs.ts'
import { type Run, type RunState, startRun } from './run.ts'
import { buildCall, curlCommand, innerInput, inputProblem, type Mode, NO_OPTIONS, type RunOptions } from './run-call.ts'

const MODES: readonly (readonly [Mode, string])[] = [
  ['run', 'Run'],
  ['runsync', 'Run and wait'],
  ['stream', 'Stream'],
  ['openai', 'OpenAI chat'],
]

/** The mode that an address names; null if the runner is closed. */
export function findMode(name: string | null): Mode | null {
  return MODES.find(([mode]) => mode === name)?.[0] ?? null
}

/** The panel with the runner. */
export function Runner({ endpoint, mode }: { readonly endpoint: Endpoint; readonly mode: Mode }) {
  const inputs = useInputs(endpoint, mode)
  const [options, setOptions] = useState(NO_OPTIONS)
  const [run, setRun] = useState<Run | null>(null)
  const latest = useRef<Run | null>(null)
  latest.current = run
  useEffect(() => () => latest.current?.leave(), [])
  const { text, setText } = inputs
  const problem = inputProblem(text, mode)
  const call = buildCall(endpoint.id, mode, text, options)
  const start = () => {
    inputs.keep()
    run?.leave()
    setRun(startRun(endpoint.id, mode, call))
  }
  const phase = run?.state.value.phase
  const goesOn = phase === 'sending' || phase === 'running'
  return (
    <Section
      title="New request"
      actions={
        <Button kind="quiet" onPress={() => setQuery({ run: null })} aria-label="Close the runner">
          ✕
        </Button>
      }
    >
      <div class="runner">
        <div>
          <div class="tools">
            <Choice label="How it runs" value={mode} options={MODES} onChange={next => setQuery({ run: next })} />
          </div>
          <InputField mode={mode} text={text} problem={problem} onChange={setText} onRun={start} />
          {mode === 'openai' ? null : <Options options={options} onChange={setOptions} />}
          <div class="tools">
            <Button kind="main" onPress={start} disabled={problem !== null || goesOn}>
              {goesOn ? 'Running…' : 'Send the request'}
            </Button>
            {goesOn ? <Button onPress={run!.cancel}>Cancel the job</Button> : null}
            <span class="hint wide-only">
              <kbd>Ctrl</kbd> <kbd>Enter</kbd>
            </span>
            {mode === 'openai' ? (
              <a href={`/playground?model=${encodeURIComponent(endpoint.name)}`}>Open the playground</a>
            ) : null}
            <EarlierInputs inputs={inputs.earlier} onChoose={setText} />
          </div>
          <details>
            <summary>The same as a command</summary>
            <Code text={curlCommand(who.value!.server.url, endpoint.id, mode, call)} />
          </details>
        </div>
        <Outcome endpointId={endpoint.id} run={run} />
      </div>
    </Section>
  )
}

function InputField({
  mode,
  text,
  problem,
  onChange,
  onRun,
}: {
  readonly mode: Mode
  readonly text: string
  readonly problem: string | null
  readonly onChange: (text: string) => void
  readonly onRun: () => void
}) {
  const inner = mode === 'openai' ? null : innerInput(text)
  const keys = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return
    event.preventDefault()
    if (problem === null) onRun()
  }
  return (
    <Field
      label={mode === 'openai' ? 'Chat request (JSON)' : 'Input (JSON)'}
      {...(problem === null ? {} : { path: '$', problems: { $: [problem] } })}
      hint={
        inner === null ? undefined : (
          <>
            This is a whole request; the worker would get an input with an “input” in it.{' '}
            <Button onPress={() => onChange(inner)}>Use its input</Button>
          </>
        )
      }
    >
      {attributes => (
        <textarea
          {...attributes}
          class="json"
          rows={9}
          value={text}
          spellcheck={false}
          onInput={event => onChange(event.currentTarget.value)}
          onKeyDown={keys}
        />
      )}
    </Field>
  )
}

/** Texts of the editor: one for jobs, one for chats, each with the last inputs. */
function useInputs(endpoint: Endpoint, mode: Mode) {
  const isChat = mode === 'openai'
  const id = isChat ? `${endpoint.id} chat` : endpoint.id
  const [sentCount, setSentCount] = useState(0)
  const earlier = useMemo(() => lastInputs(id), [id, sentCount])
  const [texts, setTexts] = useState<Readonly<Record<string, string>>>({})
  const text = texts[id] ?? earlier[0] ?? (isChat ? firstChat(endpoint) : '{\n  "name": "World"\n}')
  return {
    text,
    setText: (next: string) => setTexts({ ...texts, [id]: next }),
    earlier,
    keep: () => {
      setTexts({ ...texts, [id]: text })
      keepInput(id, text)
      setSentCount(sentCount + 1)
    },
  }
}

function firstChat({ name, modelReferences }: Endpoint): string {
  const model = modelReferences[0]?.replace(/:[^/:]*$/, '') ?? name
  return JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello!' }], stream: true }, null, 2)
}

function EarlierInputs({
  inputs,
  onChoose,
}: {
  readonly inputs: readonly string[]
  readonly onChoose: (text: string) => void
}) {
  if (inputs.length === 0) return null
  return (
    <select
      class="earlier to-end"
      aria-label="Earlier inputs"
      value=""
      onChange={event => {
        const input = inputs[Number(event.currentTarget.value)]
        event.currentTarget.value = ''
        if (input !== undefined) onChoose(input)
      }}
    >
      <option value="">Earlier inputs…</option>
      {inputs.map((input, at) => (
        <option key={input} value={at}>
          {input.replaceAll(/\s+/g, ' ').slice(0, 80)}
        </option>
      ))}
    </select>
  )
}

function Options({
  options,
  onChange,
}: {
  readonly options: RunOptions
  readonly onChange: (options: RunOptions) => void
}) {
  const change = (part: Partial<RunOptions>) => onChange({ ...options, ...part })
  return (
    <details class="options">
      <summary>Options</summary>
      <TextField
        label="Webhook"
        type="url"
        placeholder="https://example.com/done"
        value={options.webhook}
        onChange={webhook => change({ webhook })}
      />
      <div class="two">
        <TextField
          label="Execution timeout (s)"
          type="number"
          placeholder="default of the endpoint"
          value={options.executionTimeout}
          onChange={executionTimeout => change({ executionTimeout })}
        />
        <TextField
          label="Deleted after, ttl (s)"
          type="number"
          placeholder="86400"
          value={options.ttl}
          onChange={ttl => change({ ttl })}
        />
      </div>
      <CheckField
        label="Low priority"
        hint="Runs when a worker is idle; starts no worker."
        value={options.lowPriority}
        onChange={lowPriority => change({ lowPriority })}
      />
    </details>
  )
}

function Outcome({ endpointId, run }: { readonly endpointId: string; readonly run: Run | null }) {
  if (run === null) return <div class="outcome empty">The output of the job appears here.</div>
  const state = run.state.value
  const { job, jobId, problem, phase } = state
  return (
    <div class="outcome" role="region" aria-label="Result of the request">
      <div class="tools" aria-live="polite">
        {job === null ? (
          <span class="faint">{phase === 'failed' ? 'Not run' : 'Sent; waits for an answer…'}</span>
        ) : (
          <>
            <JobState status={job.status} />
            <span>
              waited <b>{duration(job.delayTime)}</b>
            </span>
            {job.executionTime === undefined ? null : (
              <span>
                took <b>{duration(job.executionTime)}</b>
              </span>
            )}
          </>
        )}
        {jobId === null ? null : <JobLink id={jobId}>Open the job</JobLink>}
      </div>
      {problem === null ? null : (
        <p class="notice bad" role="alert">
          {problem}
        </p>
      )}
      <Output endpointId={endpointId} mode={run.mode} state={state} />
    </div>
  )
}

function Output({
  endpointId,
  mode,
  state,
}: {
  readonly endpointId: string
  readonly mode: Mode
  readonly state: RunState
}) {
  const { job, text, chunks, isCut, phase, largeBytes } = state
  const error = job?.error === undefined ? null : readError(job.error)
  const isStreamed = mode === 'stream' || mode === 'openai'
  return (
    <>
      {error === null ? null : (
        <>
          <p class="bad-text">{error.title}</p>
          {error.trace === null ? null : <Code text={error.trace} what="traceback" />}
        </>
      )}
      {isStreamed && (text !== '' || phase === 'running') ? (
        <>
          <p class="hint">
            {isCut ? 'The beginning is omitted. ' : ''}
            {mode === 'openai' ? `${count(text.length)} characters` : plural(chunks, 'chunk')}
            {phase === 'running' ? ', more may follow' : ''}
          </p>
          <Code text={text} what={isCut ? 'end of the output' : 'output'} />
        </>
      ) : null}
      {job === null || largeBytes === null ? null : (
        <LargeValue endpointId={endpointId} jobId={job.id} part="output" size={largeBytes} />
      )}
      {job?.output === undefined || (isStreamed && text !== '') ? null : (
        <OutputView
          value={job.output}
          what={job.status === 'IN_PROGRESS' ? 'progress' : 'output'}
          name={`${job.id}-output`}
        />
      )}
    </>
  )
}
