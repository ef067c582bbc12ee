// The streets of the demo: an invented town, as metres to the east and to the north of its centre.
//
// Streets that cross have a point in common.

/** Metres to the east and to the north of the centre. */
export type StreetPoint = readonly [east: number, north: number]

export interface Street {
  readonly name: string
  /** Whether its end leads to its beginning. */
  readonly isRing: boolean
  readonly points: readonly StreetPoint[]
}

/** The place of the centre, in degrees. */
export const centre = { longitude: 19.5, latitude: 47 } as const

const metresPerDegree = 111_320
const eastScale = metresPerDegree * Math.cos((centre.latitude * Math.PI) / 180)

/** Degrees with six decimals, which is 10 cm. */
const rounded = (degrees: number): number => Math.round(degrees * 1e6) / 1e6

export const longitudeOf = ([east]: StreetPoint): number => rounded(centre.longitude + east / eastScale)
export const latitudeOf = ([, north]: StreetPoint): number => rounded(centre.latitude + north / metresPerDegree)

/** `east,north east,north …` */
const pointsOf = (line: string): readonly StreetPoint[] =>
  line.split(' ').map(pair => {
    const [east = 0, north = 0] = pair.split(',').map(Number)
    return [east, north]
  })

const road = (name: string, line: string): Street => ({ name, isRing: false, points: pointsOf(line) })
const ring = (name: string, line: string): Street => ({ name, isRing: true, points: pointsOf(line) })

export const streets: readonly Street[] = [
  ring(
    'Inner Ring',
    '640,0 560,330 310,570 0,660 -340,590 -570,310 -650,-10 -550,-350 -320,-560 10,-640 330,-570 580,-320',
  ),
  ring(
    'Outer Ring',
    '1520,60 1430,560 1180,980 760,1330 250,1510 -20,1500 -300,1480 -800,1290 -1230,930 -1450,430 -1500,-90 -1390,-610 -1120,-1040 -700,-1350 -180,-1500 20,-1500 360,-1470 830,-1270 1210,-930 1440,-470',
  ),
  road(
    'Long Street',
    '60,2300 30,1900 -20,1500 0,1050 0,660 -30,300 0,0 40,-310 10,-640 -30,-1080 20,-1500 110,-1950 90,-2350',
  ),
  road(
    'Market Street',
    '2500,-160 2050,-60 1520,60 1080,20 640,0 300,30 0,0 -310,-30 -650,-10 -1060,-80 -1500,-90 -2000,40 -2450,0',
  ),
  road(
    'Mill Road',
    '1900,1700 1560,1320 1180,980 860,640 560,330 250,180 0,0 -260,-240 -550,-350 -860,-720 -1120,-1040 -1480,-1380 -1800,-1850',
  ),
  road(
    'Abbey Road',
    '-1850,1650 -1540,1240 -1230,930 -880,600 -570,310 -280,210 0,0 260,-180 580,-320 900,-640 1210,-930 1600,-1220 1950,-1640',
  ),
  road(
    'River Road',
    '-2600,900 -2100,760 -1700,820 -1340,680 -940,760 -560,900 -140,1010 0,1050 420,1120 760,1330 1090,1480 1500,1420 1980,1560',
  ),
  ring(
    'Park Loop',
    '10,-640 -30,-1080 -420,-1180 -700,-1350 -980,-1600 -640,-1820 -240,-1790 20,-1500 260,-1260 330,-570',
  ),
  road('Hill Street', '640,0 1080,20 1300,260 1430,560 1720,640 2010,520 2300,690'),
  road('Station Road', '-650,-10 -1060,-80 -1300,-330 -1390,-610 -1750,-700 -2050,-560 -2380,-640'),
]
