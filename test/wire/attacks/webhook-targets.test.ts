/** Webhooks must not be a way into the network of the server, nor reveal its content. */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { type AddressInfo, createServer as createSocketServer } from 'node:net'
import { test } from 'node:test'
import { atEnd } from '../support/cleanup.ts'
import { ask, graphql } from '../support/client.ts'
import { until } from '../support/until.ts'
import { startProbedServer } from './probed-server.ts'

type Client = { url: string; apiKey: string }

/** A job with this webhook that is over at once. */
async function notify(client: Client, endpoint: string, webhook: string): Promise<string> {
  const { json } = await ask(client, `/v2/${endpoint}/run`, { body: { input: {}, webhook } })
  await ask(client, `/v2/${endpoint}/cancel/${json.id}`, { method: 'POST' })
  return json.id
}

async function endpointOf(client: Client): Promise<string> {
  const template = { name: 't', imageName: 'image:1', containerDiskInGb: 1, volumeInGb: 0, isServerless: true, env: [] }
  const { saveTemplate } = await graphql(
    client,
    'mutation($input: SaveTemplateInput!) { saveTemplate(input: $input) { id } }',
    { input: { ...template, dockerArgs: '' } },
  )
  const input = { name: 'e', instanceIds: ['cpu3g-2-8'], templateId: saveTemplate.id, workersMin: 0, workersMax: 0 }
  const saved = await graphql(client, 'mutation($input: EndpointInput!) { saveEndpoint(input: $input) { id } }', {
    input,
  })
  return saved.saveEndpoint.id
}

async function firstTry(client: Client, endpoint: string, id: string) {
  return until('a try', async () => {
    const { json } = await ask(client, `/v2/${endpoint}/webhooks/${id}`)
    return json?.deliveries?.[0]?.tries?.[0] ?? false
  })
}

async function listening(server: {
  listen(port: number, host: string, then: () => void): unknown
  address(): unknown
}) {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

test("a stranger's webhooks reach no private address, and all failures there look the same", async () => {
  let calls = 0
  const secret = createServer((_, response) => {
    calls += 1
    response.writeHead(418).end('secret')
  })
  const spare = createSocketServer(() => {})
  const [open, closed] = [await listening(secret), await listening(spare)]
  spare.close()
  atEnd(() => void secret.close())
  const spellings = [`http://[::ffff:127.0.0.1]:${open}/`, `http://2130706433:${open}/`]
  // On one server no private address may be called, on the other that of another machine, which this one is not.
  const refusing = triesOn([], [`http://127.0.0.1:${open}/`, 'http://no-such-name.invalid/'])
  const calling = triesOn(['--webhook-private', 'on'], [...spellings, `http://127.0.0.1:${closed}/`])
  const seen = new Set((await Promise.all([refusing, calling])).flat().map(entry => JSON.stringify(entry)))
  assert.equal(seen.size, 1, [...seen].join())
  assert.match([...seen][0]!, /"tookMs":10000,"error":"not delivered/)
  assert.equal(calls, 0)
})

/** First tries as another account sees them, without their times, on a server with these arguments. */
async function triesOn(args: readonly string[], targets: readonly string[]): Promise<object[]> {
  const server = await startProbedServer({ trusting: false, args: ['--processes', 'off', '--docker', 'off', ...args] })
  const account = await ask(server, '/v2/account/accounts', { body: { name: 'stranger' } })
  const key = await ask(server, '/v2/account/keys', { body: { name: 'k', account: account.json.id } })
  const stranger = { url: server.url, apiKey: key.json.key as string }
  const endpoint = await endpointOf(stranger)
  server.forgetHolds()
  const ids = await Promise.all(targets.map(url => notify(stranger, endpoint, url)))
  const tries = await Promise.all(ids.map(id => firstTry(stranger, endpoint, id)))
  server.assertNeverHeld()
  await server.stop()
  return tries.map(({ at: _, ...rest }) => rest)
}

test('webhooks of the operator go to this machine also when there is a second account', async () => {
  let calls = 0
  const receiver = createServer((_, response) => {
    calls += 1
    response.writeHead(200).end()
  })
  const port = await listening(receiver)
  atEnd(() => void receiver.close())
  const server = await startProbedServer({ trusting: false, args: ['--processes', 'off', '--docker', 'off'] })
  const endpoint = await endpointOf(server)
  await ask(server, '/v2/account/accounts', { body: { name: 'second' } })
  const id = await notify(server, endpoint, `http://127.0.0.1:${port}/`)
  assert.equal((await firstTry(server, endpoint, id)).status, 200)
  assert.equal(calls, 1)
  await server.stop()
})
