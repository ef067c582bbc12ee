// What stands in the way of others, in a broker of one node.
import t from 'tap'
import { holdsNobody } from './hold.js'

holdsNobody(t, [])
