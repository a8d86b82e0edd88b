/** Requests for a draft, from a file or from the clipboard. */
import type { ComponentChildren } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import { ApiError, api, JsonText } from '../../client/api.ts'
import { bytes, count, plural } from '../../format.ts'
import { announce } from '../../parts/announce.tsx'
import { Ask, type FormField, type Values } from '../../parts/ask.tsx'
import { Button } from '../../parts/basic.tsx'
import { Field } from '../../parts/form.tsx'
import { CALL, type Lines, readLines, withLines } from './json-lines.ts'

const EXAMPLE = '{"input": {"name": "Ada"}}\n{"input": {"name": "Grace"}, "policy": {"lowPriority": true}}'

const FIELDS: readonly FormField[] = [
  { name: 'name', label: 'Name', hint: 'For people. Optional.' },
  { name: 'webhook', label: 'Webhook', type: 'url', hint: 'Called once when the batch is done. Optional.' },
]

/**
 * A form for a draft with requests, or for more requests of one.
 * @param batch the draft that receives them; a new one unless given
 */
export function NewRequests({
  endpoint,
  batch,
  onClose,
  onDone,
}: {
  readonly endpoint: string
  readonly batch?: string
  readonly onClose: () => void
  readonly onDone: (batch: string) => void
}) {
  const [text, setText] = useState('')
  const [file, setFile] = useState<{ readonly name: string; readonly text: string } | null>(null)
  const lines = useMemo(() => readLines(file?.text ?? text), [file, text])
  const isNew = batch === undefined
  const act = async (values: Values) => {
    const body = batchBody(lines.array, values)
    try {
      if (isNew) onDone((await api('POST /v2/{endpoint}/batch', { path: { endpoint }, body })).id)
      else {
        await api('POST /v2/{endpoint}/batch/{batch}/requests', { path: { endpoint, batch }, body })
        onDone(batch)
      }
    } catch (error) {
      throw error instanceof ApiError ? new ApiError(error.status, withLines(error.message, lines)) : error
    }
  }
  const take = async (chosenFile: File) => {
    if (chosenFile.size <= CALL.bytes) return setFile({ name: chosenFile.name, text: await chosenFile.text() })
    announce(`${chosenFile.name} has ${bytes(chosenFile.size)}; a call may have 10 MiB. Split the file.`, 'problem')
  }
  return (
    <Ask
      title={isNew ? 'New batch' : 'Add requests'}
      action={`${isNew ? 'Create a draft with' : 'Add'} ${plural(lines.count, 'request')}`}
      asked={isNew ? FIELDS : []}
      act={act}
      onClose={onClose}
      isReady={lines.count > 0 && lines.problems.length === 0}
      more={() => (
        <>
          <Dropped onFile={take}>
            {file === null ? null : (
              <p>
                <b>{file.name}</b>, {bytes(file.text.length)}{' '}
                <Button kind="quiet" onPress={() => setFile(null)}>
                  Take it away
                </Button>
              </p>
            )}
          </Dropped>
          {file === null ? (
            <Field label="Requests" hint="A JSON object on each line, or a JSON array of them.">
              {attributes => (
                <textarea
                  {...attributes}
                  class="json"
                  rows={8}
                  value={text}
                  placeholder={EXAMPLE}
                  spellcheck={false}
                  onInput={event => setText(event.currentTarget.value)}
                />
              )}
            </Field>
          ) : null}
          <RequestCount lines={lines} />
        </>
      )}
    />
  )
}

function RequestCount({ lines: { count: requests, problems } }: { readonly lines: Lines }) {
  if (problems.length > 0) {
    return (
      <div class="notice bad" role="alert">
        <ul>
          {problems.map(problem => (
            <li key={problem}>{problem}</li>
          ))}
        </ul>
      </div>
    )
  }
  return (
    <p class="hint" role="status">
      {requests === 0 ? 'The draft runs after you finalize it.' : `${plural(requests, 'request')} can be read.`}
    </p>
  )
}

function Dropped({
  onFile,
  children,
}: {
  readonly onFile: (file: File) => unknown
  readonly children: ComponentChildren
}) {
  const [isOver, setOver] = useState(false)
  const take = (files: FileList | null | undefined) => files?.[0] !== undefined && onFile(files[0])
  return (
    <div
      role="group"
      aria-label="File"
      class={`drop${isOver ? ' over' : ''}`}
      onDragOver={event => {
        event.preventDefault()
        setOver(true)
      }}
      onDragLeave={() => setOver(false)}
      onDrop={event => {
        event.preventDefault()
        setOver(false)
        take(event.dataTransfer?.files)
      }}
    >
      <label>
        A file with requests, at most 10 MiB and {count(CALL.requests)} of them; choose it or drop it here{' '}
        <input
          type="file"
          accept=".jsonl,.ndjson,.json,.txt"
          onChange={event => {
            take(event.currentTarget.files)
            event.currentTarget.value = ''
          }}
        />
      </label>
      {children}
    </div>
  )
}

/** The body with the original text of the requests: parsing would change large numbers. */
function batchBody(array: string, fields: Values): JsonText {
  const members = Object.entries(fields).map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)},`)
  return new JsonText(`{${members.join('')}"requests":${array}}`)
}
