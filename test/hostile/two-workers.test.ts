// What stands in the way of others, in a broker of two workers.
import t from 'tap'
import { holdsNobody } from './hold.js'

holdsNobody(t, ['-workers', '2'])
