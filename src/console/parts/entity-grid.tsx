// The table of entities: draws the visible rows only, and has one row for the keyboard.
//
// All rows have one height, so the place of a row follows from its number. Arrows, Page Up and Down, Home and End move;
// Enter opens.

import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { type EntityRow, type EntityRows, isFresh } from '../state/entity-rows.js'
import { useValue } from '../state/observable.js'
import { cellText } from './value-text.js'

const rowPixels = 28
/** Rows that are drawn above and below the visible ones. */
const spareRows = 8

const fixed = [
  ['id', 'id'],
  ['type', 'type'],
  ['servicePath', 'path'],
] as const

export interface GridProps {
  readonly rows: EntityRows
  readonly linkOf: (row: EntityRow) => string
  readonly onOpen: (row: EntityRow) => void
  readonly active: number
  readonly onActive: (index: number) => void
  readonly onOrder: (orderBy: string) => void
}

export function EntityGrid({ rows, linkOf, onOpen, active, onActive, onOrder }: GridProps) {
  useValue(rows.version)
  const total = useValue(rows.total) ?? 0
  const box = useRef<HTMLDivElement>(null)
  const [view, setView] = useState({ top: 0, height: 400 })
  const { columns, orderBy } = rows.selection
  const first = Math.max(0, Math.floor(view.top / rowPixels) - spareRows)
  const last = Math.min(total - 1, Math.ceil((view.top + view.height) / rowPixels) + spareRows)

  useLayoutEffect(() => {
    const { current: element } = box
    if (!element) return
    const measure = (): void => setView({ top: element.scrollTop, height: element.clientHeight })
    const observer = new ResizeObserver(measure)
    observer.observe(element)
    return () => observer.disconnect()
  }, [])
  useEffect(() => {
    if (total > 0) rows.show(first, Math.max(first, last))
    const lastSeen = Math.floor((view.top + view.height - rowPixels) / rowPixels) - 1
    rows.window.set([Math.floor(view.top / rowPixels), Math.max(0, Math.min(total - 1, lastSeen))])
  }, [rows, first, last, total, view])

  const move = (to: number): void => {
    const index = Math.max(0, Math.min(total - 1, to))
    onActive(index)
    const { current: element } = box
    if (!element) return
    const top = index * rowPixels
    // The head covers the first row's height.
    const room = element.clientHeight - 2 * rowPixels
    if (top < element.scrollTop) element.scrollTop = top
    else if (top > element.scrollTop + room) element.scrollTop = top - room
  }
  const page = Math.max(1, Math.floor(view.height / rowPixels) - 2)
  const moves: Readonly<Record<string, number>> = {
    ArrowDown: active + 1,
    ArrowUp: active - 1,
    PageDown: active + page,
    PageUp: active - page,
    Home: 0,
    End: total - 1,
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.target !== box.current) return
    const to = moves[event.key]
    const row = event.key === 'Enter' ? rows.row(active) : undefined
    if (to === undefined && !row) return
    event.preventDefault()
    if (to !== undefined) move(to)
    else if (row) onOpen(row)
  }

  const drawn = []
  for (let index = first; index <= last; index++) drawn.push(index)
  return (
    <div
      ref={box}
      class="grid"
      role="grid"
      tabIndex={0}
      aria-label="Entities"
      aria-rowcount={total + 1}
      aria-colcount={fixed.length + columns.length}
      aria-activedescendant={active >= first && active <= last ? `row-${active}` : undefined}
      onScroll={({ currentTarget }) => setView({ top: currentTarget.scrollTop, height: currentTarget.clientHeight })}
      onKeyDown={onKeyDown}
    >
      <div role="rowgroup" class="grid-head">
        <div role="row" class="row" aria-rowindex={1}>
          {fixed.map(([key, name]) => (
            <HeadCell key={key} name={name} order={key} orderBy={orderBy} onOrder={onOrder} />
          ))}
          {columns.map(name => (
            <HeadCell key={`of ${name}`} name={name} order={name} orderBy={orderBy} onOrder={onOrder} />
          ))}
        </div>
      </div>
      <div role="rowgroup" class="grid-body" style={{ height: `${total * rowPixels}px` }}>
        {drawn.map(index => (
          <Row
            key={index}
            index={index}
            row={rows.row(index)}
            columns={columns}
            isActive={index === active}
            linkOf={linkOf}
            onActive={onActive}
          />
        ))}
      </div>
    </div>
  )
}

function HeadCell({
  name,
  order,
  orderBy,
  onOrder,
}: {
  readonly name: string
  readonly order: string
  readonly orderBy: string
  readonly onOrder: (orderBy: string) => void
}) {
  const isUp = orderBy === order
  const isDown = orderBy === `!${order}`
  return (
    <div role="columnheader" class="cell" aria-sort={isUp ? 'ascending' : isDown ? 'descending' : 'none'}>
      <button type="button" class="plain" onClick={() => onOrder(isUp ? `!${order}` : isDown ? '' : order)}>
        {name}
        {isUp ? ' ↑' : isDown ? ' ↓' : ''}
      </button>
    </div>
  )
}

interface RowProps {
  readonly index: number
  /** undefined: it is being read. */
  readonly row: EntityRow | undefined
  readonly columns: readonly string[]
  readonly isActive: boolean
  readonly linkOf: (row: EntityRow) => string
  readonly onActive: (index: number) => void
}

function Row({ index, row, columns, isActive, linkOf, onActive }: RowProps) {
  return (
    <div
      role="row"
      id={`row-${index}`}
      class={`row${isActive ? ' active' : ''}`}
      aria-rowindex={index + 2}
      aria-selected={isActive}
      style={{ top: `${index * rowPixels}px` }}
      onClick={() => onActive(index)}
    >
      <div role="gridcell" class="cell">
        {row ? (
          <a href={linkOf(row)} tabIndex={-1}>
            {cellText(row.id)}
          </a>
        ) : (
          '…'
        )}
      </div>
      <div role="gridcell" class="cell">
        {cellText(row?.type)}
      </div>
      <div role="gridcell" class="cell">
        {cellText(row?.path)}
      </div>
      {columns.map(name => {
        const flash = row && isFresh(row, name) ? ' flash' : ''
        return (
          <div role="gridcell" key={name} class={`cell${flash}`}>
            {cellText(row && Object.hasOwn(row.values, name) ? row.values[name] : undefined)}
          </div>
        )
      })}
    </div>
  )
}
