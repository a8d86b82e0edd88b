/** The actions on a job, by its state. */
import { useState } from 'preact/hooks'
import { api, JsonText, request } from '../../../client/api.ts'
import type { JobRecord } from '../../../client/api-types.d.ts'
import { announce } from '../../../parts/announce.tsx'
import { Button } from '../../../parts/basic.tsx'
import { Confirm, Dialog } from '../../../parts/dialog.tsx'
import { FormProblems, JsonField, useSending } from '../../../parts/form.tsx'
import { setQuery } from '../../../router.ts'
import { isFinal } from './job-story.ts'
import { inputProblem } from './run-call.ts'

/** The buttons of a job. @param onRemoved closes the job */
export function JobActions({
  endpointId: endpoint,
  job,
  onRemoved,
}: {
  readonly endpointId: string
  readonly job: JobRecord
  readonly onRemoved: () => void
}) {
  const [open, setOpen] = useState<'replay' | 'delete' | 'cancel' | null>(null)
  const path = { endpoint, job: job.id }
  const mayRetry = (job.status === 'FAILED' || job.status === 'TIMED_OUT') && job.resultExpiresAt !== null
  const retry = async () => {
    await api('POST /v2/{endpoint}/retry/{job}', { path })
    announce('The job is in the queue again')
  }
  return (
    <>
      {isFinal(job.status) ? (
        <Button kind="danger" onPress={() => setOpen('delete')}>
          Delete…
        </Button>
      ) : (
        <Button kind="danger" onPress={() => setOpen('cancel')}>
          Cancel the job…
        </Button>
      )}
      <Button onPress={() => setOpen('replay')}>Run again with changes…</Button>
      {mayRetry ? (
        <Button kind="main" onPress={retry}>
          Retry
        </Button>
      ) : null}
      {open === 'replay' ? <Replay endpointId={endpoint} job={job} onClose={() => setOpen(null)} /> : null}
      {open === 'cancel' ? (
        <Confirm
          title="Cancel this job?"
          action="Cancel the job"
          onConfirm={async () => {
            await api('POST /v2/{endpoint}/cancel/{job}', { path })
            announce('Cancelled the job')
          }}
          onClose={() => setOpen(null)}
        >
          <p>{job.status === 'IN_QUEUE' ? 'It leaves the queue.' : 'Its worker stops it.'}</p>
        </Confirm>
      ) : null}
      {open === 'delete' ? (
        <Confirm
          title="Delete this job?"
          action="Delete the job"
          onConfirm={async () => {
            await api('DELETE /v2/{endpoint}/requests/{job}', { path })
            announce('Deleted the job')
            onRemoved()
          }}
          onClose={() => setOpen(null)}
        >
          <p>Its result and its record are deleted. This cannot be undone.</p>
        </Confirm>
      ) : null}
    </>
  )
}

function Replay({
  endpointId: endpoint,
  job,
  onClose,
}: {
  readonly endpointId: string
  readonly job: JobRecord
  readonly onClose: () => void
}) {
  const [storedInput] = useState(() => (job.input === undefined ? '' : JSON.stringify(job.input, null, 2)))
  const [input, setInput] = useState(storedInput || '{}')
  const { problems, isSending, send } = useSending()
  const problem = inputProblem(input, 'run')
  const replay = () =>
    send(async () => {
      // Without a body the server takes the stored input.
      const body = input === storedInput ? {} : { body: new JsonText(`{"input": ${input}}`) }
      const path = `/v2/${encodeURIComponent(endpoint)}/requests/${encodeURIComponent(job.id)}/replay`
      const { id } = (await (await request('POST', path, body)).json()) as { id: string }
      announce('A new job is in the queue')
      onClose()
      setQuery({ job: id }, { replace: false })
    })
  return (
    <Dialog
      title="Run again as a new job"
      onClose={onClose}
      actions={
        <>
          <Button onPress={onClose}>Close</Button>
          <Button kind="main" onPress={replay} disabled={isSending || problem !== null}>
            {input === storedInput ? 'Run with the same input' : 'Run with this input'}
          </Button>
        </>
      }
    >
      <FormProblems problems={problems} shown={[]} />
      {storedInput === '' ? <p class="hint">The input of this job was deleted.</p> : null}
      <JsonField label="Input (JSON)" value={input} onChange={setInput} rows={14} />
      <p class="hint">The new job has the times and the priority of this one, and no webhook.</p>
      {problem !== null && isJson(input) ? <p class="wrong">{problem}</p> : null}
    </Dialog>
  )
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
