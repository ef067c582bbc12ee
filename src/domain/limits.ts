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

/** A tenant has few service paths up to here: an id is looked up under each. Of more an index tells, and every owner is asked. */
export const fewPathsMax = 8

/** Characters of all service paths of a tenant that has few of them: of tenants there may be many thousands. */
export const fewPathsLengthMax = 1_000

/** Page size when the request names none, and the highest it may name (base.md "Limits"). */
export const pageLimitDefault = 20
export const pageLimitMax = 1000

/** Keys of an `orderBy`: sorting compares n log n times, by all keys where the first ones do not tell. */
export const orderKeysMax = 16

/** Levels of nesting inside an attribute or metadata value (entities.md §1.5). */
export const valueDepthMax = 50

/**
 * Attributes of an entity. A change of any of them copies the entity, writes all of it and compares what it was: some 8 ms at this limit, 20 ms
 * in a process that has just started. An entity that had more before there was this limit keeps them, and gets no more.
 */
export const attributesMax = 5_000

/** Metadata of one attribute; what an attribute had before there was this limit stays. */
export const metadataMax = 500

/**
 * JSON values and names in a body that may have so many bytes: 131,072 at the default of 1 MB. Each takes up to 0.2 us to be made, and as much to be
 * looked at, written and forgotten.
 */
export const valuesMax = (bodyBytesMax: number): number =>
  Math.max(valuesMin, Math.floor(bodyBytesMax / bytesPerValueMin))
const bytesPerValueMin = 8
/** Where bodies are small, this many are always taken. */
const valuesMin = 1_000

/** Elements of a list in a body: ids and types, names of attributes or metadata, entities of a query, a batch, a subscription, a registration. */
export const listLengthMax = 10_000

/**
 * Positions of one location, all its parts together, the last one of a ring included. The test for self-intersection moves edges within an array,
 * so a ring that has them all over one another costs its square in memory moves: some 10 ms at this limit.
 */
export const positionsMax = 10_000

/** Bytes of all that is stored under one id in one scope, all its types together: one row of the store. */
export const entityRowBytesMax = 16 * 1024 * 1024

/** Characters of a `q` or `mq`. Parsing costs up to 0.1 us a character, and a list in it is kept as a set. */
export const queryTextLengthMax = 65_536

/** Statements of a `q` or `mq`: a filter looks at every entity with each of them until one fails, at 10 to 100 ns. */
export const queryStatementsMax = 100

/** Statements of a `q` or `mq` with a regular expression; together they have `patternStepsMax` steps. */
export const queryPatternsMax = 10

/** Characters of a regular expression: room for a list of a hundred ids. */
export const patternLengthMax = 4096

/** Characters that a list of texts may come to when what its items have in common is written out: `^urn:x:(1|2|3)$`. */
export const plainTextsLengthMax = 65_536

/** Groups within groups of a regular expression: its compiler recurses once for each. */
export const patternDepthMax = 100

/** Steps of a regular expression, its repetitions written out. Each costs some 2 us to compile, 10 us when the process is young. */
export const patternStepsMax = 1_000

/**
 * Steps times characters of the text that a regular expression is tried on; a text that is longer does not match. So a hundred
 * steps look at 2,560 characters, ten at 25,600, and any at an identifier.
 *
 * A test takes some 10 ns a character while the automaton has all its states in memory. Patterns that are made to hurt have more
 * states than memory, and go on without: then it is 5 to 15 ns for each step and character, 4 ms at this limit.
 */
export const patternWorkMax = patternStepsMax * identifierLengthMax

/**
 * Bytes of automaton that one regular expression may keep, some 300 states. With more it goes without: filling them took 2 to 4 ms, once. Less
 * makes ordinary patterns with many states slow.
 */
export const automatonBytesMax = 128 * 1024

/**
 * What may be spent to make all states of one automaton in advance: their transitions, each with the places in the program that it leads to. 0.1 to
 * 0.4 us each, so up to 2 ms; patterns in use need 100 to 3,000.
 */
export const explorationMax = 4_000

/** The same for all regular expressions of one subscription or selection together; what finds nothing left goes without an automaton. */
export const explorationTogetherMax = 40_000

/**
 * Characters of one attribute's value that a `~=` of a subscription looks at, those of all elements of an array together; what is longer does not match.
 * Who creates a subscription pays for so many, whatever the values are.
 */
export const subscriptionTextLengthMax = 4_096

/**
 * Steps times characters that all regular expressions of a tenant may cost for one event: 20 ms at this limit, at up to 15 ns each. It has room for
 * 1,700 different patterns of ids as people write them, or 110 different `~=`, that all look at the same entities.
 */
export const eventWorkMax = 1_000_000

/** Regular expressions for ids and types in one selection: one takes some 0.1 ms to compile, however short. */
export const selectionPatternsMax = 200

/**
 * Their steps together. Every entity may have to be compared with all of them: 25 ms at this limit, for the worst patterns and the
 * longest ids.
 */
export const selectionStepsMax = 1_500

/** Compiled regular expressions kept for the next request that uses the same text, each with its automaton. */
export const patternsKeptMax = 64

/**
 * Positions in the shape of a geographical query. Every edge of a stored location whose box overlaps the shape's is compared with
 * the boxes of runs of sixteen of them: some 125 at this limit.
 */
export const shapePositionsMax = 2_000

/** Characters of `coords`: 50 for each of `shapePositionsMax` positions, enough for any pair of doubles. */
export const coordsLengthMax = 100_000

/** Characters of the description of a subscription or registration (base.md "Limits"). */
export const descriptionLengthMax = 1024

/** Time that a subscription may give one notification (subscriptions.md §1.5). */
export const notificationTimeoutMsMax = 1_800_000

/** UTF-16 units of an MQTT topic: as many as fit its 65,535 bytes in any script. */
export const topicLengthMax = 21_845

/**
 * Subscriptions of all tenants together. Every owner of shards keeps a copy of each: 1 to 2 KB of memory, and 10 us at start.
 */
export const subscriptionsMax = 1_000_000

/** Bytes of a subscription as it is stored: it has to fit into what owners send each other, where its quotes are escaped. */
export const subscriptionBytesMax = 8 * 1024 * 1024

/** Registrations of all tenants together. Every owner of shards keeps a copy of each, and an index: 1 to 2 KB of memory, and 10 us at start. */
export const registrationsMax = 1_000_000

/** Bytes of a registration as it is stored, for the same reason. */
export const registrationBytesMax = 8 * 1024 * 1024
