// The languages of requests, as test/support/mutator.ts mutilates them: texts from the other tables, and their words.
// The words of a language are one string, with blanks between them.

import type { QueryLanguage } from '../../src/domain/queries/query-parser.js'
import type { Language } from '../support/mutator.js'
import { refusedAttributeLists, refusedAttributes, refusedEntities } from './entity-payloads.js'
import * as geo from './geo.js'
import { queryTables, refusedQueries } from './q.js'
import { locationCases, operatorCases } from './updates.js'

/** Words; one of them is a blank. */
const words = (text: string): readonly string[] => [' ', ...text.trim().split(/\s+/)]

// q and mq

const queryWords = `' . : ; , ! = < > ~ + - * { } [ ] ( ) == != >= <= ~= .. 0 1 A B temp null true 2024-01-01 1e999 'x.y' __proto__
  servicePath dateCreated A~=[ab]*a[ab]{300} ~=^(a+)+$ ;A`

export const queryLanguage = (language: QueryLanguage): Language => ({
  texts: [
    ...queryTables.filter(table => table.language === language).flatMap(({ rows }) => rows.map(([text]) => text)),
    ...refusedQueries.filter(([of]) => of === language).map(([, text]) => text),
  ],
  words: words(queryWords),
  nests: [["'", "'"]],
  lengthMax: 70_000,
})

// Patterns

const ids = Array.from({ length: 100 }, (_, at) => `urn:x:${at}`)

export const patternLanguage: Language = {
  texts: [
    ...words(`^(a+)+$ (a|aa)+$ (x+x+)+y ((a|)+)+$ (.*a.*b){20}c (a|b)*a(a|b){20}$ (a|b)*a(a|b){180}$ (a*)*b [ab]*a[ab]{12}$
      [ab]*a[ab]{900}$ ([ab]*a[ab]?){100} Room ^Room[0-9]+$ ^urn:ngsi-ld:(Room|Hall):.* ^[A-Za-z0-9_.-]{1,255}$ \\d+\\w*\\s?\\b
      [[:alpha:]]+ [^a]{2,} \\x{1F600} (?:a|b) .* ^$`),
    `^${'a?'.repeat(400)}$`,
    ids.join('|'),
    `^(${ids.join('|')})$`,
  ],
  words:
    words(`( ) [ ] { } * + ? | ^ $ \\ . , - : a b 0 1 {1,255} {300} {,2} {2,} [[:alpha:]] [^ :] \\d \\b \\Q \\x{ (?: (?i) (?= .*
    a|b (a|b)* (a+)+ [ab] [一-龠] |urn:x:1`),
  nests: [
    ['(', ')'],
    ['(', ')*'],
    ['(?:', '){2}'],
    ['[', ']'],
    ['(a|', ')+'],
  ],
  lengthMax: 5_000,
}

// Geography

const errors = geo.errors.map(([geometry, georel, coords]) => ({ geometry, georel, coords }))

export const geoRows: readonly { readonly georel: string; readonly geometry: string; readonly coords: string }[] = [
  ...geo.cases,
  ...geo.casesAtTheEdge,
  ...errors,
]

const nothing = [['', '']] as const

export const georelLanguage: Language = {
  texts: geoRows.map(({ georel }) => georel),
  words: words('near coveredBy intersects equals disjoint ; : maxDistance: minDistance: 1 1e7 -'),
  nests: nothing,
  lengthMax: 1_000,
}

export const geometryLanguage: Language = {
  texts: ['point', 'line', 'polygon', 'box'],
  words: words('point line polygon box ;'),
  nests: nothing,
  lengthMax: 1_000,
}

export const coordsLanguage: Language = {
  texts: geoRows.map(({ coords }) => coords),
  words: words('0 1 2 3 4 5 6 7 8 9 + - . ; , e 90 -180 180 1e9 1e-300 0,0; ;1,1 0,0;0,4;2,4;2,0;0,0 NaN 0x1'),
  nests: nothing,
  lengthMax: 110_000,
}

// The head of a request

export const orderLanguage: Language = {
  texts: words('id !id a,!b temp,!dateModified geo:distance !geo:distance A,B,temp,status,tags,addr,at,last,k,0'),
  words: words('! , A temp id type servicePath dateExpires __proto__ x.y at geo:distance'),
  nests: nothing,
  lengthMax: 16_000,
}

export const queryStringLanguage: Language = {
  texts:
    words(`id=R1,R2&type=Room idPattern=^Room.*&q=temp>10;status==on options=count,keyValues&attrs=temp,*,dateModified
    limit=10&offset=5&orderBy=!temp,id mq=temp.acc<5&metadata=*,dateCreated typePattern=%5ER%2Fo&q=A==%2B01:00
    georel=near;maxDistance:100&geometry=point&coords=40.4,-3.7 q=A~=^(a%2B)%2B$ options=unique&attrs=0,__proto__`),
  words:
    words(`& = , ; % + / ? # ! ~ ^ . * %3D %00 %C3 %F0%9F%98%80 %zz q= mq= id= type= idPattern= options= attrs= limit= offset= 1
    1001 count values A temp>1 __proto__=1 < "`),
  nests: [
    ['%', '5'],
    ['%25', ''],
  ],
  lengthMax: 17_000,
}

export const headerLanguage: Language = {
  texts: [
    ...words(
      '/v2/entities /v2/entities/R1/attrs/temp/value /v2/entities//attrs /Madrid/#,/a/b_c Madrid "x" -1.5e3 null 2024-01-01',
    ),
    '*/*;q=0.5, text/plain',
    'application/json;charset=utf-8',
    'text/*;q=1,application/json;q=',
  ],
  words: words('/ # , ; = * . " _ % q= q=0.5 text/plain application/json %2F a null 1'),
  nests: [
    ['/', ''],
    ['%2', '5'],
  ],
  lengthMax: 17_000,
}

// Bodies

const jsonWords = `{ } [ ] : , " \\ 0 1 {" ": "id": "type": "value": "metadata": "A":{"value":1} "A":1 null true "\\u0000" "\\ud800" 1e400
  1e-400 -0 1e21 "$inc" {"$push":1} "geo:json" "__proto__": "entities":[{`

const json = {
  words: words(jsonWords),
  nests: [
    ['[', ']'],
    ['{"a":', '}'],
    ['[{"a":', '}]'],
    ['"', '"'],
  ],
  lengthMax: 60_000,
} as const

/** Entities and lists of attributes. */
export const entityLanguage: Language = {
  texts: [
    ...[refusedEntities, refusedAttributeLists, refusedAttributes].flatMap(rows => rows.map(([, body]) => body)),
    ...[...locationCases, ...operatorCases].flatMap(({ stored, body }) => [
      stored,
      body ?? '{}',
      `{"id":"R1","type":"Room",${stored.slice(1)}`,
    ]),
    '{"id":"R1","A":{"type":"geo:polygon","value":["0,0","0,4","2,4","2,0","0,0"]},"dateExpires":{"type":"DateTime","value":"2030-01-01"}}',
    '{"id":"R1","type":"Room","A":{"value":[{"k":1},[2,"x",null]],"metadata":{"acc":{"type":"DateTime","value":"2024-01-01"}}}}',
  ],
  ...json,
}

/** Payloads of the operations under /v2/op. */
export const batchLanguage: Language = {
  texts: [
    '{"entities":[{"idPattern":"^Room","type":"Room"},{"id":"bus7","typePattern":"^Veh"}],"attrs":["temp","dateModified"],"metadata":["*"]}',
    '{"expression":{"q":"temp>20","georel":"near;maxDistance:500","geometry":"point","coords":"42.2,-8.7","mq":"A.acc<5"}}',
    '{"entities":[{"idPattern":".*"}],"expression":{"q":"A~=[ab]*a[ab]{300}$;temp"},"attributes":["A"]}',
    '{"entities":[{"id":"urn:ngsi-ld:Odd:1"},{"id":"R1","type":"T"},{"idPattern":"^(a+)+$","typePattern":"R|T"}]}',
    '{"actionType":"append","entities":[{"id":"R1","type":"Room","temp":{"value":1,"metadata":{"acc":{"value":2}}}}]}',
    '{"actionType":"delete","entities":[{"id":"R1","temp":null},{"id":"R1"}]}',
    '{"actionType":"APPEND_STRICT","entities":[{"id":"R1","A":{"type":"DateTime","value":"2024-01-01T00:00Z"}}]}',
    '{"subscriptionId":"5","data":[{"id":"R1","temp":{"type":"Number","value":1,"metadata":{}}}]}',
  ],
  ...json,
}
