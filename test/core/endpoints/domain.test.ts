/** Names that can be the domain of an endpoint. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { domainProblem, domainTaken, tidiedDomain } from '../../../src/core/endpoints/domain.ts'
import type { EndpointId, OwnerId } from '../../../src/core/ids.ts'

const isServerName = (name: string) => name === 'runyard.example' || name.endsWith('.lb.example')

/** The reason for the refusal of a text, in the form in which it would be stored. */
function refusal(text: string): string | null {
  return domainProblem(tidiedDomain(text)!, isServerName)
}

test('a domain is kept in lower case, in ASCII, without a dot at its end; an empty one is no domain', () => {
  for (const [given, kept] of [
    ['Chat.Example.ORG.', 'chat.example.org'],
    [' chat.example.org ', 'chat.example.org'],
    ['bücher.example', 'xn--bcher-kva.example'],
    ['XN--BCHER-KVA.example', 'xn--bcher-kva.example'],
    ['', null],
    ['  ', null],
    [null, null],
  ] as const) {
    assert.equal(tidiedDomain(given), kept)
    if (kept !== null) assert.equal(domainProblem(kept, isServerName), null, kept)
  }
})

test('what is no name of a host is refused, with a name that would do', () => {
  for (const text of [
    ...['https://chat.example.org', 'chat.example.org/x', 'chat.example.org:8080', 'a@b.example', '*.example.org'],
    ...['-a.example', 'a-.example', 'a..example', '.example.org', 'a_b.example', 'a b.example', 'chat.example.0x'],
    ...[
      'a%41.example',
      'chat.example.org\r\nX: y',
      'chat.example.org#x',
      `${'a'.repeat(64)}.example`,
      '\u0000.example',
    ],
    ...[`${'a.'.repeat(150)}example`, 'x.1'],
  ]) {
    assert.match(refusal(text) ?? '', /is not a domain; give a name such as chat\.example\.org/, JSON.stringify(text))
  }
  assert.match(refusal('chat') ?? '', /has no dot/)
})

test('an address is not a domain, in whatever form it is written', () => {
  for (const text of ['10.0.0.1', '0x7f.1', '127.1', '256.256.256.256', '１２７.0.0.1'])
    assert.match(refusal(text) ?? '', /is an address/, text)
  assert.match(refusal('[::1]') ?? '', /is not a domain|is an address/)
})

test('names of the server, of its endpoints and of loopback are refused', () => {
  for (const text of ['runyard.example', 'RUNYARD.example.', 'e1.lb.example']) {
    assert.match(refusal(text) ?? '', /is a name of this server/, text)
  }
  for (const text of ['localhost', 'chat.localhost', 'e1.lb.localhost'])
    assert.match(refusal(text) ?? '', /of loopback/, text)
})

test('who has a domain is said to the same account alone', () => {
  const holder = { domain: 'chat.example.org', endpointId: 'e1' as EndpointId, owner: 'ada' as OwnerId }
  const to = (asking: string) => domainTaken('chat.example.org', asking as OwnerId, holder)
  assert.equal(to('ada').message, 'the domain chat.example.org is taken: endpoint e1 has it')
  assert.equal(to('bob').message, 'the domain chat.example.org is taken: another endpoint of this server has it')
  assert.equal(to('bob').status, 409)
})
