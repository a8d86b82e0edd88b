/** Short messages: shown for a moment, and read out by screen readers. */
import { signal } from '@preact/signals'
import { useLayoutEffect, useRef } from 'preact/hooks'

type Kind = 'done' | 'problem'

interface Message {
  readonly id: number
  readonly text: string
  readonly kind: Kind
}

const messages = signal<readonly Message[]>([])
const MAX_SHOWN = 4
const SHOWN_MS: Readonly<Record<Kind, number>> = { done: 3_000, problem: 9_000 }
let last = 0

/** Shows a message. */
export function announce(text: string, kind: Kind = 'done'): void {
  last += 1
  const message = { id: last, text, kind }
  messages.value = [...messages.value, message].slice(-MAX_SHOWN)
  setTimeout(() => dismiss(message.id), SHOWN_MS[kind])
}

function dismiss(id: number): void {
  messages.value = messages.value.filter(one => one.id !== id)
}

/**
 * Region of the messages: above everything, open dialogs included. It stays in the page, so
 * that messages are read out.
 */
export function Messages() {
  const region = useRef<HTMLDivElement>(null)
  const shownMessages = messages.value
  useLayoutEffect(() => {
    const element = region.current!
    // Firefox supports it since version 125.
    if (!('popover' in element)) return
    if (element.matches(':popover-open')) element.hidePopover()
    if (shownMessages.length > 0 && document.querySelector('dialog[open]') !== null) element.showPopover()
  }, [shownMessages])
  return (
    <div class="messages" role="status" aria-live="polite" popover="manual" ref={region}>
      {shownMessages.map(({ id, text, kind }) => (
        <div key={id} class={`message ${kind}`}>
          <span>{text}</span>
          <button type="button" aria-label="Dismiss" onClick={() => dismiss(id)}>
            ✕
          </button>
        </div>
      ))}
    </div>
  )
}
