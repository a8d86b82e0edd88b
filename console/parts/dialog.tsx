/** Dialogs and drawers. The browser keeps the focus inside and restores it at the end. */
import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { errorSentence } from '../client/api.ts'
import { Button } from './basic.tsx'

/** A dialog over the page; `drawer` has the whole height at the right. Escape closes it. */
export function Dialog({
  title,
  onClose,
  kind = 'dialog',
  children,
  actions,
}: {
  readonly title: string
  readonly onClose: () => void
  readonly kind?: 'dialog' | 'drawer'
  readonly children: ComponentChildren
  readonly actions?: ComponentChildren
}) {
  const element = useRef<HTMLDialogElement>(null)
  const isGone = useRef(false)
  const id = useId()
  useEffect(() => {
    const dialog = element.current!
    const previousFocus = document.activeElement
    if (!dialog.open) dialog.showModal()
    return () => {
      isGone.current = true
      dialog.close()
      if (previousFocus instanceof HTMLElement && previousFocus.isConnected) previousFocus.focus()
    }
  }, [])
  return (
    <dialog
      ref={element}
      class={kind}
      aria-labelledby={id}
      onCancel={event => {
        event.preventDefault()
        onClose()
      }}
      onClose={() => {
        // Browsers close a dialog at the second Escape without asking. A dialog that should stay is opened again.
        if (isGone.current) return
        onClose()
        requestAnimationFrame(() => isGone.current || element.current?.open || element.current?.showModal())
      }}
      onMouseDown={event => {
        if (event.target === element.current) onClose()
      }}
    >
      <div class="dialog-body">
        <header>
          <h2 id={id}>{title}</h2>
          <Button kind="quiet" onPress={onClose} aria-label="Close">
            ✕
          </Button>
        </header>
        <div class="dialog-content" tabIndex={0}>
          {children}
        </div>
        {actions === undefined ? null : <footer>{actions}</footer>}
      </div>
    </dialog>
  )
}

/** Asks before an action that cannot be undone. @param typed text that the person has to type first */
export function Confirm({
  title,
  action,
  typed,
  onConfirm,
  onClose,
  children,
}: {
  readonly title: string
  readonly action: string
  readonly typed?: string
  readonly onConfirm: () => Promise<unknown>
  readonly onClose: () => void
  readonly children: ComponentChildren
}) {
  const [text, setText] = useState('')
  const [problem, setProblem] = useState<string | null>(null)
  const id = useId()
  const confirm = async () => {
    setProblem(null)
    try {
      await onConfirm()
      onClose()
    } catch (error) {
      setProblem(errorSentence(error))
    }
  }
  return (
    <Dialog
      title={title}
      onClose={onClose}
      actions={
        <>
          <Button onPress={onClose}>Keep</Button>
          <Button kind="danger" onPress={confirm} disabled={typed !== undefined && text !== typed}>
            {action}
          </Button>
        </>
      }
    >
      {children}
      {typed === undefined ? null : (
        <label class="field" for={id}>
          <span>
            Type <code>{typed}</code> to continue
          </span>
          <input id={id} value={text} onInput={event => setText(event.currentTarget.value)} autocomplete="off" />
        </label>
      )}
      {problem === null ? null : (
        <p class="notice bad" role="alert">
          {problem}
        </p>
      )}
    </Dialog>
  )
}
