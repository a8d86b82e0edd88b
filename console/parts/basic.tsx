/** Small parts of pages. */
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { errorSentence } from '../client/api.ts'
import { age, clockTime, dateTime, instant } from '../format.ts'
import { path } from '../router.ts'
import { announce } from './announce.tsx'

/** A button that runs an action and is disabled until it ends. A failure is announced. */
export function Button({
  onPress,
  kind = 'plain',
  title,
  disabled = false,
  children,
  ...rest
}: {
  readonly onPress: () => unknown
  readonly kind?: 'plain' | 'main' | 'danger' | 'quiet'
  readonly title?: string
  readonly disabled?: boolean
  readonly children: ComponentChildren
  readonly 'aria-label'?: string
  readonly 'aria-pressed'?: boolean
  readonly 'aria-expanded'?: boolean
}) {
  const [isBusy, setBusy] = useState(false)
  const press = async () => {
    setBusy(true)
    try {
      await onPress()
    } catch (error) {
      announce(errorSentence(error), 'problem')
    } finally {
      setBusy(false)
    }
  }
  return (
    <button
      type="button"
      class={`button ${kind}`}
      title={title}
      disabled={disabled || isBusy}
      onClick={press}
      {...rest}
    >
      {children}
    </button>
  )
}

/** Copies a text: the whole of it. @param text a function for one that is made when it is copied */
export function Copy({ text, what = 'text' }: { readonly text: string | (() => string); readonly what?: string }) {
  const [isDone, setDone] = useState(false)
  const copy = async () => {
    if (!('clipboard' in navigator)) throw new Error('The browser copies over HTTPS only. Select the text instead.')
    await navigator.clipboard.writeText(typeof text === 'string' ? text : text())
    setDone(true)
    announce(`Copied the ${what}`)
    setTimeout(() => setDone(false), 1_500)
  }
  return (
    <Button kind="quiet" onPress={copy} aria-label={`Copy the ${what}`}>
      {isDone ? 'Copied' : 'Copy'}
    </Button>
  )
}

/**
 * A text to copy: a command, an address, a snippet.
 * @param whole the text to copy where only a part of it is shown
 */
export function Code({
  text,
  what = 'command',
  whole = text,
}: {
  readonly text: string
  readonly what?: string
  readonly whole?: string | (() => string)
}) {
  return (
    <div class="code">
      <pre tabIndex={0}>{text}</pre>
      <Copy text={whole} what={what} />
    </div>
  )
}

/** The age of an instant; the title has the instant. */
export function Ago({
  at,
  suffix = '',
}: {
  readonly at: string | number | null | undefined
  readonly suffix?: string
}) {
  if (at === null || at === undefined) return <span class="faint">–</span>
  const text = age(at)
  return (
    <time dateTime={new Date(instant(at)).toISOString()} title={`${dateTime(at)} (${clockTime(at)})`}>
      {text}
      {text === 'now' ? '' : suffix}
    </time>
  )
}

/** Meaning of a state for people; each has a shape of its own beside its color. */
export type Tone = 'good' | 'busy' | 'wait' | 'bad' | 'off' | 'frozen'

const SHAPES: Readonly<Record<Tone, string>> = { good: '●', busy: '▶', wait: '◆', bad: '✕', off: '○', frozen: '❄' }

/** A state as a shape and a word. */
export function State({
  tone,
  children,
  title,
}: {
  readonly tone: Tone
  readonly children: ComponentChildren
  readonly title?: string
}) {
  return (
    <span class={`state ${tone}`} title={title}>
      <span aria-hidden="true">{SHAPES[tone]}</span> {children}
    </span>
  )
}

/** A failed read, with a button that tries again. */
export function Failure({ error, retry }: { readonly error: Error; readonly retry?: () => void }) {
  return (
    <div class="notice bad" role="alert">
      <span>{error.message}</span>
      {retry === undefined ? null : <Button onPress={retry}>Try again</Button>}
    </div>
  )
}

/** Placeholder for an empty list, with the next step. */
export function Empty({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) {
  return (
    <div class="empty">
      <strong>{title}</strong>
      {children}
    </div>
  )
}

/** The value of a resource, or a placeholder until the first read ends. */
export function Loaded<Type>({
  of: { data, error, reload },
  children,
}: {
  readonly of: { readonly data: Type | null; readonly error: Error | null; readonly reload: () => void }
  readonly children: (data: Type) => ComponentChildren
}) {
  if (data === null)
    return error === null ? <p class="faint loading">Loading…</p> : <Failure error={error} retry={reload} />
  return (
    <>
      {error === null ? null : <Failure error={error} retry={reload} />}
      {children(data)}
    </>
  )
}

/** Tabs, each with an address of its own. */
export function Tabs({
  label,
  tabs,
}: {
  readonly label: string
  readonly tabs: readonly { readonly path: string; readonly title: string }[]
}) {
  const element = useRef<HTMLElement>(null)
  const at = path.value
  useEffect(() => {
    element.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' })
  }, [at])
  return (
    <nav class="tabs" aria-label={label} ref={element}>
      {tabs.map(tab => (
        <a key={tab.path} href={tab.path} aria-current={at === tab.path ? 'page' : undefined}>
          {tab.title}
        </a>
      ))}
    </nav>
  )
}

/** A choice of a few values, as adjacent buttons. */
export function Choice<Value extends string>({
  label,
  value,
  options,
  onChange,
}: {
  readonly label: string
  readonly value: Value
  readonly options: readonly (readonly [Value, string])[]
  readonly onChange: (value: Value) => void
}) {
  return (
    <div class="choice" role="group" aria-label={label}>
      {options.map(([option, title]) => (
        <button key={option} type="button" aria-pressed={option === value} onClick={() => onChange(option)}>
          {title}
        </button>
      ))}
    </div>
  )
}

/** A name with a value, in a row of them. */
export function Figure({
  name,
  children,
  title,
}: {
  readonly name: string
  readonly children: ComponentChildren
  readonly title?: string
}) {
  return (
    <div class="figure" title={title}>
      <span>{name}</span>
      <b>{children}</b>
    </div>
  )
}

/** A part of a page with a heading, and actions beside it. */
export function Section({
  title,
  actions,
  children,
}: {
  readonly title: string
  readonly actions?: ComponentChildren
  readonly children: ComponentChildren
}) {
  return (
    <section class="section">
      <header>
        <h2>{title}</h2>
        {actions}
      </header>
      {children}
    </section>
  )
}

let isFirstHead = true

/** The head of a page: its title, with figures or actions beside it. Sets the title of the window. */
export function PageHead({
  title,
  above,
  children,
}: {
  readonly title: string
  readonly above?: ComponentChildren
  readonly children?: ComponentChildren
}) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = `${title} · Runyard`
  }, [title])
  useEffect(() => {
    // The focus was on an element of the previous page.
    if (!isFirstHead && document.activeElement === document.body) heading.current?.focus({ preventScroll: true })
    isFirstHead = false
  }, [])
  return (
    <header class="page-head">
      <div>
        {above}
        <h1 ref={heading} tabIndex={-1}>
          {title}
        </h1>
      </div>
      <div class="actions">{children}</div>
    </header>
  )
}
