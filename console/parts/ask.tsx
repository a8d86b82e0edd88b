/** Dialogs that ask for values, from a description of the fields. */
import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { Button } from './basic.tsx'
import { Dialog } from './dialog.tsx'
import { CheckField, Field, FormProblems, isAt, type Problems, SelectField, TextField, useSending } from './form.tsx'

/** One value. Its name is that of the member of the body, so that the server's problems find their field. */
export interface FormField {
  readonly name: string
  readonly label: string
  /** Initial value; default: an empty text. */
  readonly value?: string | number | boolean
  readonly hint?: string
  readonly placeholder?: string
  readonly type?: 'text' | 'url' | 'number' | 'datetime-local' | 'hidden' | 'check'
  /** The values to choose from, with their titles. */
  readonly options?: readonly (readonly [string, string])[]
}

/** The values by their names; numbers for numeric fields. Fields that were and stay empty are left out. */
export type Values = Readonly<Record<string, string | number | boolean>>

/**
 * Asks for values and sends them. The dialog shows the server's problems, and closes when there are none.
 * @param act also receives the changed members, for a body that changes something
 * @param isChange true if nothing can be sent before a value changed
 */
export function Ask({
  title,
  action,
  asked,
  act,
  onClose,
  isChange = false,
  isReady = true,
  note,
  more,
}: {
  readonly title: string
  /** Label of the button that sends. */
  readonly action: string
  readonly asked: readonly FormField[]
  readonly act: (values: Values, changed: Values) => Promise<unknown>
  readonly onClose: () => void
  readonly isChange?: boolean
  readonly isReady?: boolean
  readonly note?: ComponentChildren
  /** Fields that need more than one input each. */
  readonly more?: (problems: Problems, values: Values) => ComponentChildren
}) {
  const { problems, isSending, send } = useSending()
  const [typed, setTyped] = useState<Values>({})
  const form = useRef<HTMLFormElement>(null)
  const id = useId()
  useEffect(() => form.current?.querySelector<HTMLElement>('input, textarea, select')?.focus(), [])
  const values: Record<string, string | number | boolean> = {}
  const changed: Record<string, string | number | boolean> = {}
  for (const { name, value = '', type } of asked) {
    const now = typed[name] ?? value
    const fieldValue = type === 'number' && now !== '' ? Number(now) : now
    if (fieldValue !== '' || value !== '') values[name] = fieldValue
    if (fieldValue !== value) changed[name] = fieldValue
  }
  const isBlocked = isSending || !isReady || (isChange && Object.keys(changed).length === 0)
  const submit = async (event: Event) => {
    event.preventDefault()
    if (isBlocked) return
    if (await send(() => act(values, changed))) return onClose()
    requestAnimationFrame(() => form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus())
  }
  return (
    <Dialog
      title={title}
      onClose={onClose}
      actions={
        <>
          <Button onPress={onClose}>Cancel</Button>
          <button type="submit" form={id} class="button main" disabled={isBlocked}>
            {action}
          </button>
        </>
      }
    >
      <form id={id} ref={form} onSubmit={submit} noValidate>
        <FormProblems problems={problems} shown={shownPaths(problems, asked, more !== undefined)} />
        {asked.map(one => (
          <OneValue
            key={one.name}
            asked={one}
            value={typed[one.name] ?? one.value ?? ''}
            problems={problems}
            onChange={value => setTyped(previous => ({ ...previous, [one.name]: value }))}
          />
        ))}
        {more?.(problems, values)}
        {note}
      </form>
    </Dialog>
  )
}

/** Paths of problems that a field shows; fields of `more` show all but those of the whole body. */
function shownPaths(problems: Problems, fields: readonly FormField[], hasMore: boolean): readonly string[] {
  return Object.keys(problems).filter(
    path => path !== '$' && (hasMore || fields.some(({ name }) => isAt(`$.${name}`, path))),
  )
}

function OneValue({
  asked: { name, type = 'text', options, ...rest },
  value,
  problems,
  onChange,
}: {
  readonly asked: FormField
  readonly value: string | number | boolean
  readonly problems: Problems
  readonly onChange: (value: string | boolean) => void
}) {
  if (type === 'check') return <CheckField {...rest} value={value === true} onChange={onChange} />
  const field = { ...rest, path: `$.${name}`, problems, value: String(value), onChange }
  if (options !== undefined) return <SelectField {...field} options={options} />
  return type === 'hidden' ? <HiddenField {...field} /> : <TextField {...field} type={type} />
}

/** A field whose text is hidden until somebody reveals it. Line breaks of a text stay. */
function HiddenField({
  value,
  onChange,
  ...field
}: {
  readonly label: string
  readonly value: string
  readonly onChange: (value: string) => void
  readonly hint?: string
  readonly path: string
  readonly problems: Problems
}) {
  const [isShown, setShown] = useState(false)
  const lines = value.split('\n').length
  return (
    <Field {...field}>
      {attributes => (
        <div class="hidden-field">
          {isShown ? (
            <textarea
              {...attributes}
              class="json"
              rows={Math.min(10, lines + 1)}
              value={value}
              spellcheck={false}
              autocomplete="off"
              onInput={event => onChange(event.currentTarget.value)}
            />
          ) : (
            <input
              {...attributes}
              type="password"
              autocomplete="new-password"
              value={value}
              // A password field would drop line breaks of typed text.
              readOnly={lines > 1}
              onInput={event => onChange(event.currentTarget.value)}
              onPaste={event => {
                const pasted = event.clipboardData?.getData('text') ?? ''
                if (!pasted.trim().includes('\n')) return
                event.preventDefault()
                onChange(pasted)
              }}
            />
          )}
          <Button onPress={() => setShown(!isShown)} aria-pressed={isShown}>
            {lines > 1 && !isShown ? `Show ${lines} lines` : 'Show'}
          </Button>
        </div>
      )}
    </Field>
  )
}
