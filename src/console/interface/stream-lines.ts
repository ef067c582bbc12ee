// Reads Server-Sent Events out of a text that comes in pieces.
//
// Not `EventSource`: that cannot show a key, and does not report the status of a refusal.

export interface ServerEvent {
  readonly kind: string
  readonly id: string
  readonly json: string
}

/** A text without an end of line that is longer is no stream of this broker. */
const lineLengthMax = 64 * 1024 * 1024

export class StreamLines {
  private rest = ''
  private kind = 'message'
  private id = ''
  private json = ''

  /** The events that this piece has completed. */
  take(piece: string): ServerEvent[] {
    const lines = (this.rest + piece).split('\n')
    this.rest = lines.pop() ?? ''
    if (this.rest.length > lineLengthMax) throw new Error('the stream has a line without an end')
    const events: ServerEvent[] = []
    for (const line of lines) {
      if (line === '') this.complete(events)
      else this.field(line)
    }
    return events
  }

  private complete(events: ServerEvent[]): void {
    if (this.json !== '' || this.kind !== 'message') events.push({ kind: this.kind, id: this.id, json: this.json })
    this.kind = 'message'
    this.json = ''
  }

  private field(line: string): void {
    const colon = line.indexOf(':')
    const name = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(colon + (line[colon + 1] === ' ' ? 2 : 1))
    if (name === 'event') this.kind = value
    else if (name === 'data') this.json += value
    else if (name === 'id') this.id = value
  }
}
