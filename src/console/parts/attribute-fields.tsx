// Fields for an attribute, and how their texts become JSON.

import type { Json, JsonObject } from '../../domain/json.js'

export interface AttributeText {
  readonly name: string
  /** Empty: the broker chooses by the value. */
  readonly type: string
  readonly value: string
}

export const noAttribute: AttributeText = { name: '', type: '', value: '' }

/** JSON if it is JSON, else the text itself. */
export function parsedValue(text: string): Json {
  try {
    return JSON.parse(text) as Json
  } catch {
    return text
  }
}

/** The text that `parsedValue` reads as this value. */
export function textOfValue(value: Json): string {
  return typeof value === 'string' && parsedValue(value) === value ? value : JSON.stringify(value, undefined, 1)
}

export const attributeJson = ({ type, value }: AttributeText): JsonObject => ({
  ...(type !== '' && { type }),
  value: parsedValue(value),
})

export function AttributeFields({
  text,
  onChange,
  hasName,
}: {
  readonly text: AttributeText
  readonly onChange: (text: AttributeText) => void
  readonly hasName: boolean
}) {
  const { name, type, value } = text
  return (
    <div class="fields">
      {hasName && (
        <label>
          Attribute
          <input value={name} onInput={({ currentTarget }) => onChange({ ...text, name: currentTarget.value })} />
        </label>
      )}
      <label>
        Attribute type
        <input value={type} onInput={({ currentTarget }) => onChange({ ...text, type: currentTarget.value })} />
      </label>
      <label class="wide">
        Value (JSON, or a text)
        <textarea
          rows={value.length > 80 ? 6 : 1}
          value={value}
          onInput={({ currentTarget }) => onChange({ ...text, value: currentTarget.value })}
        />
      </label>
    </div>
  )
}
