/** Folders of the server's machine run as the server's user: only the operator chooses them and what they run. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { temporaryFolder } from '../support/cleanup.ts'
import { ask, graphql } from '../support/client.ts'
import { root } from '../support/server.ts'
import { until } from '../support/until.ts'
import { inContainers } from '../support/workers.ts'
import { type ProbedServer, startProbedServer } from './probed-server.ts'

const REFUSED = /operator's account/
const ENV = [{ key: 'NODE_OPTIONS', value: '--require=/tmp/theirs.cjs' }]

describe('folders of the machine', { skip: inContainers ? 'is about processes' : false }, () => {
  let server: ProbedServer
  let folder: string
  let endpoint: { id: string; templateId: string; name: string; workersMax: number }
  let stranger: { url: string; apiKey: string }
  let lesser: { url: string; apiKey: string }

  before(async () => {
    folder = temporaryFolder()
    writeFileSync(join(folder, 'handler.mjs'), 'setInterval(() => {}, 1000)\n')
    server = await startProbedServer({
      trusting: false,
      args: ['--worker', folder, '--docker', 'off', '--accept-shared-host'],
    })
    const { myself } = await graphql(server, '{ myself { endpoints { id templateId name workersMax } } }')
    endpoint = myself.endpoints[0]
    const account = await make('/v2/account/accounts', { name: 'stranger' })
    stranger = { url: server.url, apiKey: (await make('/v2/account/keys', { name: 'k', account: account.id })).key }
    const scope = { type: 'restricted', management: 'write', jobs: 'write' }
    lesser = { url: server.url, apiKey: (await make('/v2/account/keys', { name: 'manager', scope })).key }
    server.forgetHolds()
  })

  const make = async (path: string, body: unknown) => {
    const answer = await ask(server, path, { body })
    assert.ok(answer.status < 300, answer.text)
    return answer.json
  }

  const template = (imageName: string, more: object = {}) => ({
    name: `t${Math.random()}`,
    imageName,
    dockerArgs: '',
    containerDiskInGb: 1,
    volumeInGb: 0,
    isServerless: true,
    env: [],
    ...more,
  })
  const SAVE = 'mutation($input: SaveTemplateInput!) { saveTemplate(input: $input) { id } }'
  const SAVE_ENDPOINT = 'mutation($input: EndpointInput!) { saveEndpoint(input: $input) { id } }'

  test('another account cannot run a folder of the machine, whatever way it asks', async () => {
    const shell = template(`dir:${folder}`, { dockerArgs: "sh -c 'id'" })
    await assert.rejects(graphql(stranger, SAVE, { input: shell }), REFUSED)
    const { saveTemplate } = await graphql(stranger, SAVE, { input: template('image:1') })
    const changed = { ...shell, id: saveTemplate.id }
    await assert.rejects(graphql(stranger, SAVE, { input: changed }), REFUSED)
    const body = { name: 'x', image: `dir:${folder}`, disk: 1 }
    for (const path of ['/v2/templates', '/v2/serverless']) {
      const { status, text } = await ask(stranger, path, { body })
      assert.ok(status === 403 || status === 404 || status === 422 || status === 400, `${path}: ${status} ${text}`)
    }
    const own = { name: 'e', instanceIds: ['cpu3g-2-8'], template: shell }
    await assert.rejects(graphql(stranger, SAVE_ENDPOINT, { input: own }), REFUSED)
  })

  test("a key of the operator's account that manages cannot choose what a folder runs", async () => {
    await assert.rejects(graphql(lesser, SAVE, { input: template(`dir:${folder}`) }), REFUSED)
    for (const change of [{ dockerArgs: "sh -c 'id'" }, { env: ENV }]) {
      const input = { ...template(`dir:${folder}`, change), id: endpoint.templateId, name: 'same' }
      await assert.rejects(graphql(lesser, SAVE, { input }), REFUSED)
    }
    const linked = { name: 'e2', instanceIds: ['cpu3g-2-8'], templateId: endpoint.templateId }
    await assert.rejects(graphql(lesser, SAVE_ENDPOINT, { input: linked }), REFUSED)
    const env = { id: endpoint.id, name: endpoint.name, env: ENV }
    await assert.rejects(graphql(lesser, SAVE_ENDPOINT, { input: env }), REFUSED)
    const scaled = { id: endpoint.id, name: endpoint.name, workersMax: 2 }
    await graphql(lesser, SAVE_ENDPOINT, { input: scaled })
  })

  test('the operator runs folders that the server was started with, and no others', async () => {
    await graphql(server, SAVE, { input: template(`dir:${folder}`) })
    for (const other of [`dir:${root}`, 'dir:/', 'dir:..', `dir:${folder}/..`]) {
      await assert.rejects(graphql(server, SAVE, { input: template(other) }), /outside of the process roots|handler/)
    }
  })

  test('no input of these held the server', () => server.assertNeverHeld())

  test('with --processes off, or no folder named, no folder runs', async () => {
    await server.stop()
    for (const args of [['--processes', 'off', '--process-root', folder], []]) {
      const other = await startProbedServer({ trusting: false, args: ['--docker', 'off', ...args] })
      const input = template(`dir:${folder}`)
      await assert.rejects(graphql(other, SAVE, { input }), /processes are off|no folders to run as processes/)
      await other.stop()
    }
  })

  test('an endpoint that an older version let another account make starts no worker, and says why', async () => {
    const dataDir = temporaryFolder()
    const args = ['--worker', folder, '--docker', 'off', '--accept-shared-host']
    const first = await startProbedServer({ trusting: false, dataDir, args })
    const made = await ask(first, '/v2/account/accounts', { body: { name: 'old' } })
    const key = await ask(first, '/v2/account/keys', { body: { name: 'k', account: made.json.id } })
    const their = { url: first.url, apiKey: key.json.key as string }
    const saved = await graphql(their, SAVE, { input: template('image:1') })
    const input = {
      name: 'e',
      instanceIds: ['cpu3g-2-8'],
      templateId: saved.saveTemplate.id,
      workersMin: 0,
      workersMax: 1,
    }
    const { id } = (await graphql(their, SAVE_ENDPOINT, { input })).saveEndpoint
    await first.stop()
    const { DatabaseSync } = await import('node:sqlite')
    const db = new DatabaseSync(join(dataDir, 'runyard.sqlite'))
    db.prepare("UPDATE templates SET config = json_set(config, '$.image', ?) WHERE id = ?").run(
      `dir:${folder}`,
      saved.saveTemplate.id,
    )
    db.close()
    const second = await startProbedServer({ trusting: false, dataDir, args })
    const they = { ...their, url: second.url }
    await ask(they, `/v2/${id}/run`, { body: { input: {} } })
    const why = await until('a reason', async () => {
      const { text } = await ask(they, `/ops/why/${id}`)
      return REFUSED.test(text) && text
    })
    assert.match(why, REFUSED)
    await second.stop()
  })
})
