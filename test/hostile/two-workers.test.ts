// The corpus against a broker of two workers: no request holds the event loop for others.
import t from 'tap'
import { holdsNobody } from './hold.js'

holdsNobody(t, ['-workers', '2'])
