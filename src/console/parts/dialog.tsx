// A dialog over the page: it takes the keyboard, Esc closes it, and the element that opened it gets the focus back.

import type { ComponentChildren } from 'preact'
import { useId, useLayoutEffect, useRef } from 'preact/hooks'

export function Dialog({
  title,
  onClose,
  children,
}: {
  readonly title: string
  readonly onClose: () => void
  readonly children: ComponentChildren
}) {
  const element = useRef<HTMLDialogElement>(null)
  const id = useId()
  // Before the next key: an Esc that follows the click closes the dialog.
  useLayoutEffect(() => {
    const opener = document.activeElement
    element.current?.showModal()
    return () => {
      if (opener instanceof HTMLElement) opener.focus()
    }
  }, [])
  return (
    <dialog ref={element} aria-labelledby={id} onClose={onClose}>
      <h2 id={id}>{title}</h2>
      {children}
    </dialog>
  )
}

/** A question before something that cannot be undone. */
export function Question({
  title,
  text,
  verb,
  onYes,
  onNo,
  children,
}: {
  readonly title: string
  readonly text: string
  readonly verb: string
  readonly onYes: () => void
  readonly onNo: () => void
  readonly children?: ComponentChildren
}) {
  return (
    <Dialog title={title} onClose={onNo}>
      <p class="wrap">{text}</p>
      {children}
      <div class="buttons">
        <button type="button" class="danger" onClick={onYes}>
          {verb}
        </button>
        <button type="button" onClick={onNo}>
          Cancel
        </button>
      </div>
    </Dialog>
  )
}
