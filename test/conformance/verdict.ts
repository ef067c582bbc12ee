// Whether a conformance run is as good as the runs before it.
//
// `passing.json` is the list of cases that have passed once; it only grows. Only a case on the list that fails is a
// failure: a case that never passed is work to do. `deviations.json` names the cases that contradict the base
// specification, which has precedence: each with the sentence that it contradicts. `cluster-deviations.json` names the
// cases that one node passes and three do not, with the documented sentence about it.
//
// Pure: the runner and the files are in cases.ts.

/** The levels of the runner: `exact` is `semantic` plus all texts, headers and orders. */
export const levels = ['semantic', 'exact'] as const
export type Level = (typeof levels)[number]

/** Per level the ids of the cases that have passed, sorted. */
export type Passing = Readonly<Record<Level, readonly string[]>>

/** A case left out, since it contradicts `line`, a sentence of the base specification. */
export interface Deviation {
  readonly case: string
  readonly line: string
  readonly why: string
  /** The level that is left out; if absent, both. */
  readonly level?: Level
}

/** The result of the runner for one case. */
export type Outcome = Readonly<Record<Level, boolean>> & { readonly id: string }

export interface Verdict {
  /** Cases on the list that ran and failed, per level. */
  readonly lost: Passing
  /** Cases that passed and are not on the list yet. */
  readonly gained: Passing
}

export function judge(kept: Passing, outcomes: readonly Outcome[], deviations: readonly Deviation[]): Verdict {
  const judged = (level: Level): readonly Outcome[] => {
    const exempt = new Set(deviations.filter(one => (one.level ?? level) === level).map(one => one.case))
    return outcomes.filter(({ id }) => !exempt.has(id))
  }
  const isKept = (level: Level, { id }: Outcome): boolean => kept[level].includes(id)
  const idsOf = (level: Level, fits: (one: Outcome) => boolean): string[] =>
    judged(level)
      .filter(fits)
      .map(({ id }) => id)
  return {
    lost: perLevel(level => idsOf(level, one => !one[level] && isKept(level, one))),
    gained: perLevel(level => idsOf(level, one => one[level] && !isKept(level, one))),
  }
}

/** The list after a run: it has the gained cases too, and without the lost ones only with `force`. */
export function updated(kept: Passing, verdict: Verdict, force: boolean): Passing {
  return perLevel(level =>
    [...kept[level].filter(id => !force || !verdict.lost[level].includes(id)), ...verdict.gained[level]].sort(),
  )
}

/** The mistakes in the list of deviations: each entry needs its reasons, and its case must not be listed as passing. */
export function faultsOf(deviations: unknown, kept: Passing): string[] {
  return faultsIn('deviations.json', deviations, id =>
    levels.filter(level => kept[level].includes(id)).map(level => `is listed as passing (${level})`),
  )
}

/** The mistakes in the list of deviations of clusters: each entry must be a case that one node passes. */
export function clusterFaultsOf(deviations: unknown, kept: Passing): string[] {
  return faultsIn('cluster-deviations.json', deviations, id =>
    kept.semantic.includes(id) ? [] : ['is not listed as passing, so it needs no excuse'],
  )
}

function faultsIn(file: string, deviations: unknown, more: (id: string) => readonly string[]): string[] {
  if (!Array.isArray(deviations)) return [`${file} is not an array`]
  return deviations.flatMap((one: Record<string, unknown>, at) => {
    const fields = ['case', 'line', 'why']
    const lacking = fields.filter(field => typeof one[field] !== 'string' || one[field] === '')
    const strange = Object.keys(one).filter(field => !fields.includes(field) && field !== 'level')
    const isLevel = one.level === undefined || levels.some(level => level === one.level)
    return [
      ...(isLevel ? [] : ['has a level that is none']),
      ...lacking.map(field => `has no ${field}`),
      ...strange.map(field => `has ${field}, which means nothing`),
      ...more(String(one.case)),
    ].map(fault => `${file}[${at}] ${fault}`)
  })
}

function perLevel(ids: (level: Level) => readonly string[]): Passing {
  return { semantic: ids('semantic'), exact: ids('exact') }
}
