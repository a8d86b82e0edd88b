/** The variables by which clients of RunPod find a server. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clientVariables, workerVariables } from '../../../src/api/client-variables.ts'
import { openRig } from '../../support/rig.ts'

const LOOPBACK = { publicUrl: 'https://127.0.0.1:8443', queueUrl: 'https://127.0.0.1:8443' }
const TRUST = { bundleFile: '/data/tls/trust.pem', authorityFile: '/data/tls/certificate.pem' }

test('a server on loopback is localhost, below which endpoints have names', () => {
  const variables = clientVariables({ ...LOOPBACK, consoleUrl: 'https://console.localhost:8443' }, TRUST)
  assert.equal(variables.RUNPOD_API_BASE_URL, 'https://localhost:8443')
  assert.equal(variables.RUNPOD_ENDPOINT_BASE_URL, 'https://localhost:8443/v2')
  assert.equal(variables.RUNPOD_CONSOLE_URL, 'https://console.localhost:8443')
  assert.equal(variables.RUNPOD_GRAPHQL_URL, 'https://localhost:8443/graphql')
  assert.equal(variables.SSL_CERT_FILE, TRUST.bundleFile)
  assert.equal(variables.NODE_EXTRA_CA_CERTS, TRUST.authorityFile)
})

test('jobs are called at the domain of endpoints where there is one, and the port remains', () => {
  const variables = clientVariables(
    { publicUrl: 'https://box.lan', queueUrl: 'https://jobs.lan:8443', lbDomain: 'lb.lan' },
    null,
  )
  assert.equal(variables.RUNPOD_API_BASE_URL, 'https://box.lan')
  assert.equal(variables.RUNPOD_ENDPOINT_BASE_URL, 'https://lb.lan:8443/v2')
  assert.equal('SSL_CERT_FILE' in variables, false)
  assert.equal('RUNPOD_CONSOLE_URL' in variables, false)
})

test('a worker gets the addresses, and files only where it is a process of the machine', () => {
  const { addresses, files } = workerVariables(LOOPBACK, TRUST)
  assert.deepEqual(addresses, {
    RUNPOD_API_BASE_URL: 'https://localhost:8443',
    RUNPOD_ENDPOINT_BASE_URL: 'https://localhost:8443/v2',
  })
  assert.deepEqual(files, { SSL_CERT_FILE: TRUST.bundleFile, REQUESTS_CA_BUNDLE: TRUST.bundleFile })
})

test('the server says them to keys that may read management, without a key in them', async t => {
  const rig = await openRig(t)
  const { status, json } = await rig.ask('GET', '/ops/client')
  assert.equal(status, 200)
  assert.match(json.variables.RUNPOD_API_BASE_URL, /^https?:\/\//)
  assert.deepEqual(
    Object.keys(json.variables).filter(name => name.endsWith('KEY')),
    [],
  )
})
