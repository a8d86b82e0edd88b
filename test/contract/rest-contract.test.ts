import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { ApiParts } from '../../src/api/parts.ts'
import { openApiDocument } from '../../src/api/rest/openapi.ts'
import { restRoutes } from '../../src/api/rest/routes.ts'
import { openApiFacts } from '../support/openapi-facts.ts'

/** Facts of the public contract that ours lacks, each with its reason. */
const DIFFERENCES: readonly { readonly fact: RegExp; readonly reason: string }[] = [
  { fact: / 422( |$)/, reason: 'every failed validation is answered 400' },
  {
    fact: /\brequestUrls\.(status|stream|cancel|retry): lacks format="uri"$/,
    reason: 'with {job_id} in it, it is a URI template',
  },
  { fact: / 20[01] .*cpu\[\]\.vcpuCount: lacks minimum=2$/, reason: 'GraphQL makes workers of one vCPU' },
  { fact: / 20[01] .*mounts\.persistent\.size: lacks minimum=10$/, reason: 'other surfaces take smaller volumes' },
  { fact: /^PATCH .* body gpu\.count: lacks default=1$/, reason: 'a change that leaves it out keeps it' },
]

test('for every operation of the public contract, ours has its members, types, bounds and statuses', () => {
  // Making the table of routes calls nothing of what they use.
  const ours = openApiFacts(openApiDocument({ routes: restRoutes({} as ApiParts) }) as never)
  const missing = reference().filter(({ member, words }) => {
    const known = ours.get(member)
    return known === undefined || words.some(word => !known.has(word))
  })
  const lines = missing
    .map(({ member, words }) => {
      const known = ours.get(member)
      const what = known === undefined ? 'missing' : `lacks ${words.filter(word => !known.has(word)).join(' ')}`
      return `${member}: ${what}`
    })
    .filter(line => !DIFFERENCES.some(({ fact }) => fact.test(line)))
  assert.deepEqual(lines, [])
})

interface Fact {
  /** `<method path> <place> <member>` */
  readonly member: string
  readonly words: readonly string[]
}

/**
 * The table is indented: an operation, its places with the headers that they send, their
 * members with type and bounds.
 */
function reference(): Fact[] {
  const facts: Fact[] = []
  let operation = ''
  let place = ''
  for (const line of readFileSync(new URL('reference/rest-v2.txt', import.meta.url), 'utf8').split('\n')) {
    if (line.trim() === '') continue
    const [first = '', ...words] = line.trim().split(' ')
    if (line.startsWith('    ')) facts.push({ member: `${operation} ${place} ${first}`, words })
    else if (line.startsWith('  ')) {
      place = first
      if (/^\d|^default/.test(place)) facts.push({ member: `${operation} ${place} -`, words: ['answered'] })
      const headers = words.flatMap(word => word.replace('headers=', '').split(','))
      for (const header of headers) facts.push({ member: `${operation} ${place} header:${header}`, words: ['sent'] })
    } else operation = line.trim()
  }
  return facts
}
