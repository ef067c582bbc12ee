// JSON values as the rules see them: equality, order, and the one way in which they are written out.
export type Json = null | boolean | number | string | readonly Json[] | JsonObject

export interface JsonObject {
  readonly [key: string]: Json
}
