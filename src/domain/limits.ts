// Limits of the protocol itself, with their units in their names. Limits that an operator may choose are in config.ts.

/** Bytes of an identifier (base.md "Identifier syntax rules"); identifiers are ASCII, so characters too. */
export const identifierLengthMax = 256

/** Characters of a tenant name (base.md "Multi tenancy"). */
export const tenantLengthMax = 50

/** Levels of a service path (base.md "Service path"). */
export const pathLevelsMax = 10

/** Characters of one level of a service path. */
export const pathLevelLengthMax = 50

/** Service paths in one header of a query. */
export const pathsMax = 10

/** Page size when the request names none, and the highest it may name (base.md "Limits"). */
export const pageLimitDefault = 20
export const pageLimitMax = 1000

/** Levels of nesting inside an attribute or metadata value (entities.md §1.5). */
export const valueDepthMax = 50

/** Bytes of all that is stored under one id in one scope, all its types together: one row of the store. */
export const entityRowBytesMax = 16 * 1024 * 1024

/**
 * Vertices of one ring of a polygon. The test for self-intersection moves edges within an array, so a ring that has them all over
 * one another costs its square in memory moves: some 10 ms at this limit.
 */
export const ringVerticesMax = 10_000

/** Characters of a `q` or `mq`. Parsing costs up to 0.1 us a character, and a list in it is kept as a set. */
export const queryTextLengthMax = 65_536

/** Statements of a `q` or `mq`: a filter looks at every entity with each of them until one fails, at 10 to 100 ns. */
export const queryStatementsMax = 100

/** Statements of a `q` or `mq` with a regular expression: what each may cost to compile and to match stands below. */
export const queryPatternsMax = 10

/** Characters of a regular expression. Long ones are lists of names; reading costs some 10 us a character at worst. */
export const patternLengthMax = 4096

/** Groups within groups of a regular expression: its compiler recurses once for each. */
export const patternDepthMax = 100

/**
 * Steps a regular expression compiles to, and what its written-out repetitions may come to before that. Compiling costs 1 to 2 us
 * per step. Matching costs some 10 ns per character, yet 10 ns per step and character when the automaton has more states than memory.
 */
export const patternStepsMax = 1000
export const patternStepsMaxUnfactored = 5000

/** Bytes of automaton that one regular expression may keep. Less makes patterns with very many states slower. */
export const patternStatesBytesMax = 1024 * 1024

/** Compiled regular expressions kept for the next request that uses the same text, each with its automaton. */
export const patternsKeptMax = 64

/**
 * Positions in the shape of a geographical query. Every edge of a stored location whose box overlaps the shape's is compared with
 * the boxes of runs of sixteen of them: some 125 at this limit.
 */
export const shapePositionsMax = 2_000

/** Characters of `coords`: 50 for each of `shapePositionsMax` positions, enough for any pair of doubles. */
export const coordsLengthMax = 100_000
