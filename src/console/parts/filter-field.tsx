// A field of a filter: it takes effect a moment after the last key, and shows what is wrong with it below.

import { useEffect, useId, useRef, useState } from 'preact/hooks'
import type { RequestProblem } from '../interface/console-client.js'

const waitMs = 250

export function FilterField({
  label,
  value,
  onChange,
  problem,
  isFirst = false,
  suggestions = [],
}: {
  readonly label: string
  readonly value: string
  readonly onChange: (value: string) => void
  readonly problem?: RequestProblem | undefined
  /** Whether `/` leads to it. */
  readonly isFirst?: boolean
  readonly suggestions?: readonly string[]
}) {
  const [text, setText] = useState(value)
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  const id = useId()
  // Another address has another value, but a text that is being typed stays.
  useEffect(() => {
    if (timer.current === undefined) setText(value)
  }, [value])
  useEffect(() => () => clearTimeout(timer.current), [])
  const onInput = (typed: string): void => {
    setText(typed)
    clearTimeout(timer.current)
    timer.current = setTimeout(() => {
      timer.current = undefined
      onChange(typed)
    }, waitMs)
  }
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        value={text}
        spellcheck={false}
        autocomplete="off"
        list={suggestions.length > 0 ? `${id}-list` : undefined}
        data-filter={isFirst ? 'first' : undefined}
        aria-invalid={problem !== undefined}
        aria-describedby={problem ? `${id}-problem` : undefined}
        onInput={({ currentTarget }) => onInput(currentTarget.value)}
      />
      {suggestions.length > 0 && (
        <datalist id={`${id}-list`}>
          {suggestions.map(one => (
            <option key={one} value={one} />
          ))}
        </datalist>
      )}
      {problem && (
        <span id={`${id}-problem`} class="field-problem" role="alert">
          {problem.text}
        </span>
      )}
    </div>
  )
}
