// fast-check with the seed of the environment, so that properties, too, can be repeated (random.ts).

import fc from 'fast-check'
import { Random } from './random.js'

fc.configureGlobal({ seed: Random.fromEnvironment().seed })

export { default } from 'fast-check'
