/** Fields of forms, each with the problems that the server reports for it. */
import type { ComponentChildren } from 'preact'
import { useId, useState } from 'preact/hooks'
import { ApiError, errorSentence } from '../client/api.ts'

/** Problems of a form by the path of their member, such as `$.workers.max`. `$` has those of the whole body. */
export type Problems = Readonly<Record<string, readonly string[]>>

/** The problems that the server found, by member. */
export function problemsFromError(error: unknown): Problems {
  if (!(error instanceof ApiError) || error.problems.length === 0) return { $: [errorSentence(error)] }
  const problems: Record<string, string[]> = {}
  for (const problem of error.problems) {
    const [, path = '$', sentence = problem] = /^(\$[^\s:]*):?\s+(.*)/s.exec(problem) ?? []
    problems[path] = [...(problems[path] ?? []), sentence]
  }
  return problems
}

/** True if the path of a problem is that of a member, or below it. */
export function isAt(member: string, path: string): boolean {
  return path.startsWith(member) && /^[.[]|^$/.test(path.slice(member.length))
}

/** Sends a form: stores its problems, and reports that a send is in progress. */
export function useSending(): {
  readonly problems: Problems
  readonly isSending: boolean
  readonly send: (act: () => Promise<unknown>) => Promise<boolean>
  readonly setProblems: (problems: Problems) => void
} {
  const [problems, setProblems] = useState<Problems>({})
  const [isSending, setSending] = useState(false)
  const send = async (act: () => Promise<unknown>) => {
    setSending(true)
    try {
      await act()
      setProblems({})
      return true
    } catch (error) {
      setProblems(problemsFromError(error))
      return false
    } finally {
      setSending(false)
    }
  }
  return { problems, isSending, send, setProblems }
}

/** Problems that belong to no field of the form that is shown. @param shown paths that have a field */
export function FormProblems({ problems, shown }: { readonly problems: Problems; readonly shown: readonly string[] }) {
  const unshown = Object.entries(problems).filter(([path]) => !shown.includes(path))
  if (unshown.length === 0) return null
  return (
    <div class="notice bad" role="alert">
      <ul>
        {unshown.flatMap(([path, sentences]) =>
          sentences.map(sentence => (
            <li key={path + sentence}>{path === '$' ? sentence : `${path.slice(2)}: ${sentence}`}</li>
          )),
        )}
      </ul>
    </div>
  )
}

/** A labeled field around an input. The render function receives the id and the attributes that join them. */
export function Field({
  label,
  hint,
  path,
  problems = {},
  children,
}: {
  readonly label: string
  readonly hint?: ComponentChildren
  /** Path of the member in the body, for its problems. */
  readonly path?: string
  readonly problems?: Problems
  readonly children: (attributes: {
    readonly id: string
    readonly 'aria-describedby': string
    readonly 'aria-invalid': boolean
  }) => ComponentChildren
}) {
  const id = useId()
  const wrong =
    path === undefined
      ? []
      : Object.entries(problems)
          .filter(([of]) => isAt(path, of))
          .flatMap(([, all]) => all)
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({ id, 'aria-describedby': `${id}-hint`, 'aria-invalid': wrong.length > 0 })}
      <div id={`${id}-hint`}>
        {wrong.map(sentence => (
          <p key={sentence} class="wrong">
            {sentence}
          </p>
        ))}
        {hint === undefined ? null : <p class="hint">{hint}</p>}
      </div>
    </div>
  )
}

/** Properties of every field with a value. */
interface LabelledValue<Value> {
  readonly label: string
  readonly value: Value
  readonly onChange: (value: Value) => void
  readonly hint?: ComponentChildren
  /** Path of the member in the body, for its problems. */
  readonly path?: string
  readonly problems?: Problems
}

/** A field for a text. */
export function TextField({
  value,
  onChange,
  type = 'text',
  placeholder,
  required = false,
  disabled = false,
  ...field
}: LabelledValue<string> & {
  readonly type?: 'text' | 'password' | 'number' | 'url' | 'search' | 'datetime-local'
  readonly placeholder?: string
  readonly required?: boolean
  readonly disabled?: boolean
}) {
  return (
    <Field {...field}>
      {attributes => (
        <input
          {...attributes}
          {...({ type } as { type: 'text' })}
          value={value}
          placeholder={placeholder}
          required={required}
          disabled={disabled}
          autocomplete="off"
          spellcheck={false}
          onInput={event => onChange(event.currentTarget.value)}
        />
      )}
    </Field>
  )
}

/** A field for one of several values. */
export function SelectField<Value extends string>({
  value,
  options,
  onChange,
  disabled = false,
  ...field
}: LabelledValue<Value> & {
  readonly options: readonly (readonly [Value, string])[]
  readonly disabled?: boolean
}) {
  return (
    <Field {...field}>
      {attributes => (
        <select
          {...attributes}
          value={value}
          disabled={disabled}
          onChange={event => onChange(event.currentTarget.value as Value)}
        >
          {options.map(([option, title]) => (
            <option key={option} value={option}>
              {title}
            </option>
          ))}
        </select>
      )}
    </Field>
  )
}

/** A checkbox. */
export function CheckField({
  label,
  value,
  onChange,
  disabled = false,
  hint,
}: {
  readonly label: string
  readonly value: boolean
  readonly onChange: (value: boolean) => void
  readonly disabled?: boolean
  readonly hint?: string
}) {
  const id = useId()
  return (
    <div class="field check">
      <input
        id={id}
        type="checkbox"
        checked={value}
        disabled={disabled}
        onChange={event => onChange(event.currentTarget.checked)}
      />
      <label for={id}>{label}</label>
      {hint === undefined ? null : <p class="hint">{hint}</p>}
    </div>
  )
}

/** A field for JSON. Reports invalid JSON while somebody types. */
export function JsonField({
  value,
  onChange,
  rows = 10,
  ...field
}: LabelledValue<string> & {
  readonly rows?: number
}) {
  const problem = jsonProblem(value)
  return (
    <Field {...field} {...(problem === null ? {} : { path: '$json', problems: { $json: [problem] } })}>
      {attributes => (
        <textarea
          {...attributes}
          class="json"
          rows={rows}
          value={value}
          spellcheck={false}
          onInput={event => onChange(event.currentTarget.value)}
        />
      )}
    </Field>
  )
}

/** Reason why a text is not JSON; null if it is. */
export function jsonProblem(text: string): string | null {
  try {
    JSON.parse(text)
    return null
  } catch (error) {
    return errorSentence(error)
  }
}
