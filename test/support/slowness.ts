// How slow this machine is at the moment, so that a bound of a processor time means the same on every machine.
//
// It counts what a fixed piece of work takes of the processor: texts, objects, and memory that was not used before, as
// a request takes. Where other processes want the same core, or the core is a slower one, the work takes longer, and so
// does what is measured. The memory matters: on some virtual machines the first use of a page takes 20 us, a hundred
// times as long as on others.
//
// Not for figures of speed: those are ratios of one run (bench/).

/** What the work takes on a core that is free, of a machine where new memory costs nothing to speak of. */
const usualMs = 20
const rounds = 3
const newBytes = 12 << 20
const pageBytes = 4096

/** At least 1; 2 where the machine takes twice the usual time. The shortest of a few rounds. Takes some 60 ms. */
export function slowness(): number {
  let shortestMs = Number.POSITIVE_INFINITY
  for (let round = 0; round < rounds; round++) {
    const before = process.cpuUsage()
    work()
    const { user, system } = process.cpuUsage(before)
    shortestMs = Math.min(shortestMs, (user + system) / 1000)
  }
  return Math.max(1, shortestMs / usualMs)
}

const text = JSON.stringify(Array.from({ length: 12_000 }, (_, n) => ({ id: `e${n}`, level: { value: n / 7 } })))

function work(): void {
  const found = new Map<string, number>()
  for (const { id, level } of JSON.parse(text) as { id: string; level: { value: number } }[]) found.set(id, level.value)
  const memory = Buffer.allocUnsafeSlow(newBytes)
  for (let at = 0; at < newBytes; at += pageBytes) memory[at] = 1
  if (JSON.stringify([...found]).length < text.length / 4) throw new Error('the work was not done')
}
