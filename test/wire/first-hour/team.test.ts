/**
 * The first hour of somebody who runs Runyard for a team: two accounts, an image of a private registry, and a key
 * that is replaced and taken back.
 */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { noDocker } from '../../support/docker.ts'
import { patient } from '../../support/patience.ts'
import { openRegistry, type TestRegistry } from '../../support/registry.ts'
import { temporaryFolder } from '../support/cleanup.ts'
import { startContainerServer } from '../support/containers.ts'
import { runCommand, type Server } from '../support/server.ts'
import { until } from '../support/until.ts'

describe('a team', { skip: noDocker, timeout: patient(180_000) }, () => {
  let server: Server
  let depot: TestRegistry
  before(async () => {
    depot = await openRegistry()
    server = await startContainerServer({ args: ['--private-registry', depot.host] })
  })
  after(() => depot.close())

  /** A command with a key, which has to succeed. */
  const command = async (key: string, ...words: string[]) => {
    const { code, stdout, stderr } = await runCommand(words, { RUNYARD_URL: server.url, RUNYARD_API_KEY: key })
    assert.equal(code, 0, `${words.join(' ')}: ${stderr}`)
    return stdout
  }
  const made = async (key: string, ...words: string[]) => JSON.parse(await command(key, ...words, '--json'))
  const refused = async (key: string, ...words: string[]) => {
    const { code, stderr } = await runCommand(words, { RUNYARD_URL: server.url, RUNYARD_API_KEY: key })
    assert.notEqual(code, 0, words.join(' '))
    return stderr
  }
  const cpu = ['--cpu', '[{"id":"cpu3g","vcpuCount":2}]']
  const accountOf = async (name: string) => {
    const { id } = await made(server.apiKey, 'accounts', 'create', '--name', name)
    return (await made(server.apiKey, 'keys', 'create', '--name', `${name} admin`, '--account', id)).key as string
  }

  test('has two accounts that do not see each other, each with the same names', async () => {
    const [red, blue] = [await accountOf('red'), await accountOf('blue')]
    const words = ['endpoints', 'create', '--name', 'model', '--image', 'runyard-test-worker:latest', ...cpu]
    const [ofRed, ofBlue] = [await made(red, ...words), await made(blue, ...words)]
    assert.notEqual(ofRed.id, ofBlue.id)
    assert.equal((await command(blue, 'endpoints', 'list')).includes(ofRed.id), false)
    assert.match(await refused(blue, 'endpoints', 'get', ofRed.id), /not found/)
    assert.match(await refused(blue, 'run', ofRed.id, '--input', '{}'), /not found/)
    assert.equal((await command(server.apiKey, 'endpoints', 'list')).includes(ofBlue.id), false)
    await command(blue, 'endpoints', 'delete', 'model')
    assert.equal((await command(red, 'endpoints', 'list')).includes(ofRed.id), true)
  })

  test('runs an image of a private registry: why names the credential, and with it the worker starts', async () => {
    depot.publish('team/worker', '1', 'hello')
    const key = await accountOf('private')
    const image = `${depot.host}/team/worker:1`
    const args = JSON.stringify({ cmd: ['sh', '-c', 'echo the team is here; sleep 60'] })
    const { id } = await made(key, 'endpoints', 'create', '--name', 'team', '--image', image, '--args', args, ...cpu)
    await command(key, 'run', 'team', '--input', '{}', '--detach')
    const why = () => command(key, 'why', 'team')
    await until('the cause', async () => /image_error/.test(await why()), 60_000)
    assert.match(await why(), /-> save a registry credential that may read the image/)
    // The password is in a file, which no list of processes shows.
    const secret = join(temporaryFolder(), 'password')
    writeFileSync(secret, depot.user.password)
    const words = ['--name', 'depot', '--username', depot.user.username, '--password', `@${secret}`]
    const registry = await made(key, 'registries', 'create', ...words)
    assert.equal(JSON.stringify(registry).includes(depot.user.password), false)
    await command(key, 'endpoints', 'update', 'team', '--registry', registry.id)
    await until(
      'the worker of the private image',
      async () => (await command(key, 'logs', id)).includes('the team is here'),
      60_000,
    )
  })

  test('replaces the key of an app, and takes that back when the new one does not work', async () => {
    const admin = await accountOf('apps')
    await made(admin, 'endpoints', 'create', '--name', 'app', '--image', 'runyard-test-worker:latest', ...cpu)
    const first = await made(admin, 'keys', 'create', '--name', 'app 1', '--jobs', 'app')
    const endpoint = (await made(admin, 'endpoints', 'get', 'app')).id
    const works = (key: string) => command(key, 'jobs', 'create', endpoint, '--input', '{}')
    await works(first.key)
    assert.match(await refused(first.key, 'endpoints', 'list'), /right|permission|may not|not allowed/i)
    const second = await made(admin, 'keys', 'create', '--name', 'app 2', '--jobs', 'app')
    await command(admin, 'keys', 'disable', first.id)
    await refused(first.key, 'jobs', 'create', endpoint, '--input', '{}')
    await works(second.key)
    await command(admin, 'keys', 'enable', first.id)
    await command(admin, 'keys', 'revoke', second.id)
    await works(first.key)
    await refused(second.key, 'jobs', 'create', endpoint, '--input', '{}')
    const shown = await command(admin, 'keys', 'list')
    assert.equal(shown.includes(first.key), false)
  })
})
