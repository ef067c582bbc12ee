// A value that the page follows: state lives in these, and components only draw it.

import { useEffect, useState } from 'preact/hooks'

export class Observable<T> {
  private readonly followers = new Set<(value: T) => void>()

  constructor(private current: T) {}

  get value(): T {
    return this.current
  }

  set(value: T): void {
    if (Object.is(value, this.current)) return
    this.current = value
    for (const follow of [...this.followers]) follow(value)
  }

  /** Calls back on each change, until the returned function is called. */
  follow(follower: (value: T) => void): () => void {
    this.followers.add(follower)
    return () => this.followers.delete(follower)
  }
}

/** The value of an observable; the component is drawn again when it changes. */
export function useValue<T>(observable: Observable<T>): T {
  const [, draw] = useState(0)
  useEffect(() => {
    draw(count => count + 1)
    return observable.follow(() => draw(count => count + 1))
  }, [observable])
  return observable.value
}
