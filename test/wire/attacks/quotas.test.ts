/** A second account takes what it can get: the first one goes on with its work. */
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { ask, makeEndpoint } from '../support/client.ts'
import { root } from '../support/server.ts'
import { until } from '../support/until.ts'
import { type ProbedServer, startProbedServer } from './probed-server.ts'

let server: ProbedServer
let victim: string
let attacker: { url: string; apiKey: string }

before(async () => {
  server = await startProbedServer({ args: ['--max-workers', '2', '--account-queued-mb', '2'] })
  victim = await makeEndpoint(server, { folder: `${root}/examples/hello-node`, settings: { workersMax: 1 } })
  const account = await ask(server, '/v2/account/accounts', { body: { name: 'mallory' } })
  const made = await ask(server, '/v2/account/keys', { body: { name: 'm', account: account.json.id } })
  attacker = { url: server.url, apiKey: made.json.key }
})

function endpointBody(name: string, min: number, max = 64) {
  return {
    name,
    type: 'QUEUE',
    image: 'image:1',
    cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
    scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
    workers: { min, max },
  }
}

test('inputs of one account fill neither the disk nor the queue: past its limit they get 429 with the limit', async () => {
  const made = await ask(attacker, '/v2/serverless', { body: endpointBody('flood', 0, 0) })
  assert.equal(made.status, 201, made.text)
  const body = { input: { text: 'x'.repeat(400 * 1024) } }
  server.forgetHolds()
  const statuses: number[] = []
  let refusal = ''
  for (let count = 0; count < 8; count += 1) {
    const answer = await ask(attacker, `/v2/${made.json.id}/run`, { body })
    statuses.push(answer.status)
    if (answer.status === 429) refusal = answer.text
  }
  assert.deepEqual(statuses, [200, 200, 200, 200, 200, 429, 429, 429])
  server.assertNeverHeld()
  assert.match(refusal, /queuedMb of 2 MB of waiting inputs is reached/)
})

test('an account cannot keep all workers of the machine for itself', async () => {
  const refused = await ask(attacker, '/v2/serverless', { body: endpointBody('greedy', 64) })
  assert.equal(refused.status, 409, refused.text)
  assert.match(refused.text, /limit workersMin of 8 for all endpoints together/)
})

test('the jobs of the first account are not affected', async () => {
  const { json } = await ask(server, `/v2/${victim}/run`, { body: { input: { name: 'Ada' } } })
  await until('the job is done', async () => {
    const { status } = (await ask(server, `/v2/${victim}/status/${json.id}`)).json
    return status === 'COMPLETED'
  })
})
