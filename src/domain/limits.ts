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

/**
 * Positions in the shape of a geographical query. Every edge of a stored location whose box overlaps the shape's is compared with
 * the boxes of runs of sixteen of them: some 125 at this limit.
 */
export const shapePositionsMax = 2_000

/** Characters of `coords`: 50 for each of `shapePositionsMax` positions, enough for any pair of doubles. */
export const coordsLengthMax = 100_000
