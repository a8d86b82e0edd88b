/** The image of the server: built as a user builds it, and run as Kubernetes runs it. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { parse } from 'yaml'
import { engineUrl, noDocker, workerImage } from '../../support/docker.ts'
import { patient } from '../../support/patience.ts'
import { atEnd } from '../support/cleanup.ts'
import { ask } from '../support/client.ts'
import { root } from '../support/server.ts'
import { until } from '../support/until.ts'

const IMAGE = `runyard-test-server:${process.pid}`
const KEY = 'key-of-the-server-image'

const env = { ...process.env, DOCKER_HOST: engineUrl }
const run = promisify(execFile)
const docker = async (...words: string[]) => (await run('docker', words, { env })).stdout.trim()

/** A server in a container whose root file system nobody may write to, of a user without any right. */
async function startInContainer(...words: string[]) {
  const limits = ['--read-only', '--tmpfs', '/tmp', '--cap-drop', 'ALL', '--security-opt', 'no-new-privileges']
  const id = await docker('run', '--detach', ...limits, '--env', `RUNYARD_API_KEY=${KEY}`, IMAGE, 'serve', ...words)
  atEnd(() => docker('rm', '--force', '--volumes', id))
  return { id, server: await readyAt(id) }
}

/** The server in a container, once it is ready; a restart may have given the container another address. */
async function readyAt(id: string) {
  const address = await docker('inspect', '--format', '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}', id)
  const server = { url: `http://${address}:8080`, apiKey: KEY }
  const isReady = () =>
    ask(server, '/readyz').then(
      ({ status }) => status === 200,
      () => false,
    )
  await until('the server in the container', isReady)
  return server
}

describe('the image of the server', { skip: noDocker, timeout: patient(180_000) }, () => {
  before(async () => {
    // Another build may be about to use the layers below it.
    atEnd(() => docker('rmi', '--no-prune', '--force', IMAGE))
    await run(`${root}/bin/node`, ['scripts/image.ts', '--tag', IMAGE, '--base', workerImage], { cwd: root, env })
  })

  test('runs a job as a numbered user on a read-only file system, and ends in order on SIGTERM', async () => {
    const { id, server } = await startInContainer('--sample', '--json')
    const job = await ask(server, '/v2/hellonode/runsync?wait=60000', { body: { input: { name: 'Ada' } } })
    assert.equal(job.json?.output?.message, 'Hello, Ada!', job.text)
    assert.equal(await docker('exec', id, 'id', '-u'), '10001')
    await assert.rejects(docker('exec', id, 'touch', '/opt/runyard/x'), /Read-only file system/)
    await docker('stop', '--time', '30', id)
    // 143 would be a server that SIGTERM has killed, 137 one that did not end by itself.
    assert.equal(await docker('inspect', '--format', '{{.State.ExitCode}}', id), '0')
    assert.match(await docker('logs', id), /"event":"ready"/)
  })

  test('commands in the container find the server and its key by themselves', async () => {
    const { id } = await startInContainer('--sample')
    assert.equal(JSON.parse(await docker('exec', id, 'runyard', 'endpoints', 'list', '--json')).id, 'hellonode')
  })

  test('the health check of the compose file passes in it, and not without a server', async () => {
    const { services } = parse(readFileSync(`${root}/deploy/compose/compose.yml`, 'utf8'))
    const [, ...words] = services.server.healthcheck.test
    const { id } = await startInContainer()
    await docker('exec', id, ...words)
    await assert.rejects(docker('run', '--rm', '--entrypoint', words[0], IMAGE, ...words.slice(1)), { code: 1 })
  })

  test('a restart of the container keeps its data, also after a kill', async () => {
    const { id, server } = await startInContainer('--sample')
    const { json: job } = await ask(server, '/v2/hellonode/runsync?wait=60000', { body: { input: { name: 'Ada' } } })
    for (const words of [
      ['restart', '--time', '30', id],
      ['kill', id],
    ]) {
      await docker(...words)
      if (words[0] === 'kill') await docker('start', id)
      const again = await readyAt(id)
      const { json: kept } = await ask(again, `/v2/hellonode/status/${job.id}`)
      assert.deepEqual([kept.status, kept.output?.message], ['COMPLETED', 'Hello, Ada!'])
    }
  })

  test('says by a number that it is not root, keeps its data in a volume, and has no npm and no sources', async () => {
    const { Config } = JSON.parse(await docker('image', 'inspect', '--format', '{{json .}}', IMAGE))
    assert.equal(Config.User, '10001:10001')
    assert.deepEqual(Object.keys(Config.Volumes), ['/var/lib/runyard'])
    const find = ['-c', 'find / -xdev \\( -name npm -o -name npx -o -path /opt/runyard/src \\) 2>/dev/null || true']
    assert.equal(await docker('run', '--rm', '--entrypoint', 'sh', IMAGE, ...find), '')
  })
})
