// Something that takes its time to load, and is loaded when it is needed for the first time.

export class Lazy<T> {
  private readonly load: () => Promise<T>
  private loading: Promise<T> | undefined
  private made: T | undefined

  constructor(load: () => Promise<T>) {
    this.load = load
  }

  /** What has been loaded; undefined: nothing has. */
  get loaded(): T | undefined {
    return this.made
  }

  // [hot] Once per notification.
  /** Hands it over: at once when it is loaded, else when it is, in the order of the calls. */
  use(run: (made: T) => void): void {
    if (this.made !== undefined) return run(this.made)
    this.loading ??= this.load().then(made => {
      this.made = made
      return made
    })
    void this.loading.then(run)
  }
}
