// Limits of the protocol itself, with their units in their names. Limits that an operator may choose are in config.ts.

/** Bytes of an identifier (docs/interface/entities.md#identifiers); identifiers are ASCII, so characters too. */
export const identifierLengthMax = 256

/** Characters of a tenant name (docs/interface/tenants-and-paths.md#tenants). */
export const tenantLengthMax = 50

/** Levels of a service path (docs/interface/tenants-and-paths.md#service-paths). */
export const pathLevelsMax = 10

/** Characters of one level of a service path. */
export const pathLevelLengthMax = 50

/** Service paths in one header of a query. */
export const pathsMax = 10

/** Service paths of a tenant under each of which an id is looked up. With more, every owner is asked. */
export const fewPathsMax = 8

/** Characters of all service paths of a tenant with few of them: there may be many thousands of tenants. */
export const fewPathsLengthMax = 1_000

/** Page size when the request has none, and the highest allowed one (docs/interface/limits.md#every-limit). */
export const pageLimitDefault = 20
export const pageLimitMax = 1000

/** Keys of an `orderBy`: sorting makes n log n comparisons, by all keys if the first ones are equal. */
export const orderKeysMax = 16

/** Levels of nesting inside an attribute or metadata value (docs/interface/requests.md#bodies). */
export const valueDepthMax = 50

/**
 * Attributes of an entity: a change copies, writes and compares all of them, some 8 ms at this limit. An entity that
 * had more before this limit existed keeps them, and may get no more.
 */
export const attributesMax = 5_000

/** Metadata of one attribute. An attribute that had more before this limit existed keeps them. */
export const metadataMax = 500

/**
 * JSON values and names in a body: 131,072 at the default of 1 MB. Each takes up to 0.4 us to be parsed, checked and
 * written.
 */
export const valuesMax = (bodyBytesMax: number): number =>
  Math.max(valuesMin, Math.floor(bodyBytesMax / bytesPerValueMin))
const bytesPerValueMin = 8
/** The limit is never lower than this, also where bodies are small. */
const valuesMin = 1_000

/** Elements of a list in a body: ids, types, names, entities. */
export const listLengthMax = 10_000

/**
 * Positions of one location in total. The test for self-intersection moves edges within an array: in the worst case the
 * square of this number, some 10 ms.
 */
export const positionsMax = 10_000

/** Bytes of all entities of one id in one scope, of all types together: one row of the store. */
export const entityRowBytesMax = 16 * 1024 * 1024

/** Characters of a `q` or `mq`. Parsing costs up to 0.1 us a character, and a list in it is kept as a set. */
export const queryTextLengthMax = 65_536

/** Statements of a `q` or `mq`. A filter tries them on every entity until one fails, at 10 to 100 ns each. */
export const queryStatementsMax = 100

/** Statements of a `q` or `mq` with a regular expression; together they have `patternStepsMax` steps. */
export const queryPatternsMax = 10

/** Characters of a regular expression: room for a list of a hundred ids. */
export const patternLengthMax = 4096

/** Characters of a list of texts that replaces a pattern: `^urn:x:(1|2|3)$` is three texts. */
export const plainTextsLengthMax = 65_536

/** Groups within groups of a regular expression: its compiler recurses once for each. */
export const patternDepthMax = 100

/** Steps of a regular expression with its repetitions written out. Each costs 2 to 10 us to compile. */
export const patternStepsMax = 1_000

/**
 * Steps of a regular expression times characters of the tested text; a longer text does not match. A hundred steps can
 * test 2,560 characters, ten 25,600, and any number an identifier.
 *
 * A test takes some 10 ns a character while the automaton has all its states in memory. A pattern with more states than
 * memory takes 5 to 15 ns for each step and character, 4 ms at this limit.
 */
export const patternWorkMax = patternStepsMax * identifierLengthMax

/**
 * Bytes of the automaton of one regular expression, some 300 states, which take 2 to 4 ms to fill. An expression that
 * needs more has no automaton. A lower limit makes ordinary patterns slow.
 */
export const automatonBytesMax = 128 * 1024

/**
 * Transitions that may be computed in advance for one automaton, each with the positions in the program that it leads
 * to: 0.1 to 0.4 us each. Typical patterns need 100 to 3,000.
 */
export const explorationMax = 4_000

/** The same for all expressions of one subscription or selection. Further expressions have no automata. */
export const explorationTogetherMax = 40_000

/**
 * Characters that a `~=` of a subscription tests in one attribute, all elements of an array together; a longer value
 * does not match. A subscription is charged for all of them.
 */
export const subscriptionTextLengthMax = 4_096

/**
 * Steps times characters of all regular expressions of a tenant for one event: 20 ms at most. There is room for 1,700
 * usual patterns of ids, or 110 different `~=`, that all test the same entities.
 */
export const eventWorkMax = 1_000_000

/** Regular expressions for ids and types in one selection: one takes some 0.1 ms to compile, however short. */
export const selectionPatternsMax = 200

/** Their steps together. Every entity may be compared with all of them: 25 ms at worst. */
export const selectionStepsMax = 1_500

/** Compiled regular expressions that are cached for later requests with the same text, each with its automaton. */
export const patternsKeptMax = 64

/**
 * Positions in the shape of a geographical query. An edge of a stored location is compared with the boxes of runs of
 * sixteen of them: some 125 at this limit.
 */
export const shapePositionsMax = 2_000

/** Characters of `coords`: 50 for each of `shapePositionsMax` positions, enough for any pair of doubles. */
export const coordsLengthMax = 100_000

/** Characters of the description of a subscription or registration (docs/interface/limits.md#every-limit). */
export const descriptionLengthMax = 1024

/** Time that a subscription may give one notification (docs/interface/subscriptions.md#http-receivers). */
export const notificationTimeoutMsMax = 1_800_000

/** UTF-16 units of an MQTT topic: as many as fit its 65,535 bytes in any script. */
export const topicLengthMax = 21_845

/** Subscriptions of all tenants together. Every owner of shards keeps a copy of each: 1 to 2 KB, and 10 us at start. */
export const subscriptionsMax = 1_000_000

/** Bytes of a stored subscription: it must fit into a message between owners, where its quotes are escaped. */
export const subscriptionBytesMax = 8 * 1024 * 1024

/** Registrations of all tenants together. Every owner of shards keeps a copy of each: 1 to 2 KB, and 10 us at start. */
export const registrationsMax = 1_000_000

/** Bytes of a stored registration, for the same reason. */
export const registrationBytesMax = 8 * 1024 * 1024
