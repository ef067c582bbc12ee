// The names of the vendor headers: ours, or those of clients that come from elsewhere. Both are understood in every request.

export type Vocabulary = 'Ctx' | 'Fiware'
