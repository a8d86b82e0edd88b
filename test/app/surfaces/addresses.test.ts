import assert from 'node:assert/strict'
import { test } from 'node:test'
import { balancedUrl, browserUrl } from '../../../src/api/addresses.ts'
import type { EndpointId } from '../../../src/core/ids.ts'

test('programs call a load-balancing endpoint below /lb/, or at a host of the domain with the same scheme and port', () => {
  const url = (publicUrl: string, lbDomain: string | null) =>
    balancedUrl({ publicUrl, queueUrl: 'http://queue', lbDomain }, 'e1' as EndpointId)
  assert.equal(url('http://127.0.0.1:8080', null), 'http://127.0.0.1:8080/lb/e1')
  assert.equal(url('http://localhost:8080', null), 'http://localhost:8080/lb/e1')
  assert.equal(url('https://api.example', null), 'https://api.example/lb/e1')
  assert.equal(url('http://127.0.0.1:8080', 'lb.example'), 'http://e1.lb.example:8080')
  assert.equal(url('https://api.example', 'lb.example'), 'https://e1.lb.example')
})

test('browsers have an origin for each endpoint where there is one', () => {
  const url = (publicUrl: string, lbDomain: string | null, domain: string | null = null) =>
    browserUrl({ publicUrl, queueUrl: 'http://queue', lbDomain }, { id: 'e1' as EndpointId, domain })
  for (const host of ['127.0.0.1', 'localhost', '[::1]']) {
    assert.equal(url(`http://${host}:8080`, null), 'http://e1.lb.localhost:8080')
  }
  assert.equal(url('http://127.0.0.2:8080', null), null)
  assert.equal(url('https://api.example', null), null)
  assert.equal(url('https://api.example', 'lb.example'), 'https://e1.lb.example')
  assert.equal(url('https://api.example:8443', 'lb.example', 'chat.example.org'), 'https://chat.example.org:8443')
  assert.equal(url('https://api.example', null, 'chat.example.org'), 'https://chat.example.org')
})
