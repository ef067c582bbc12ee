// How slow this machine is at the moment. A test multiplies its bound of processor time by it, so that the bound means
// the same on every machine.
//
// It measures the processor time of a fixed piece of work, which handles texts, objects and new memory, as a request
// does. A slower core, or one that other processes use as well, takes longer for the work and for the measured request
// alike. New memory matters: on some virtual machines the first use of a page takes 20 us, a hundred times as long as
// on others.
//
// Not for figures of speed: those are ratios of one run (bench/).

/** Processor time of the work on a free core of a machine where new memory is cheap. */
const usualMs = 20
const rounds = 3
const newBytes = 12 << 20
const pageBytes = 4096

/** At least 1; 2 where the work takes twice the usual time. The shortest of a few rounds counts. Takes 60 to 200 ms. */
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
