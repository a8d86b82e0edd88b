/** Images: built by the command, built at the start of a server, and those of the examples, run. */
import assert from 'node:assert/strict'
import { cpSync, writeFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { patient } from '../../support/patience.ts'
import { atEnd, temporaryFolder } from '../support/cleanup.ts'
import { ask, runJob } from '../support/client.ts'
import { engine, engineEnv, openContainer, openedServer, probeSkip, testImage } from '../support/probe.ts'
import { silentEndpoint } from '../support/raw-worker.ts'
import { root, runCommand, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const build = (folder: string, name: string, ...more: string[]) => {
  atEnd(() =>
    engine
      .getImage(name)
      .remove({ force: true })
      .catch(() => {}),
  )
  return runCommand(['build', folder, '-t', name, '--json', '--build-arg', `BASE=${testImage}`, ...more], engineEnv)
}

const example = (name: string) => `${root}/examples/${name}`

describe('images', { skip: probeSkip, timeout: patient(180_000), concurrency: 2 }, () => {
  test('the command builds an image, and says which step failed', async () => {
    const folder = temporaryFolder()
    const missing = await build(folder, 'runyard-test-none:1')
    assert.equal(missing.code, 66)
    assert.match(missing.stderr, /has no Dockerfile/)
    writeFileSync(`${folder}/Dockerfile`, `ARG BASE\nFROM $BASE\nARG WHO\nRUN echo hello $WHO; exit 3\n`)
    const failed = await build(folder, 'runyard-test-none:1', '--build-arg', 'WHO=you')
    assert.equal(failed.code, 65)
    assert.match(failed.stderr, /runyard: the build failed in step 4\/4: RUN echo .*non-zero code: 3\n {2}hello you$/s)
    writeFileSync(`${folder}/Dockerfile`, 'ARG BASE\nFROM $BASE\nLABEL of=us\n')
    const built = await build(folder, 'runyard-test-built:1')
    const { id } = JSON.parse(built.stdout) as { id: string }
    const image = await engine.getImage('runyard-test-built:1').inspect()
    assert.deepEqual([image.Id, image.Config.Labels], [id, { of: 'us' }])
    const wrong = await runCommand(['build', folder, '-t', 'x', '--build-arg', '=y'], engineEnv)
    assert.equal(wrong.code, 64)
    const away = await runCommand(['build', folder, '-t', 'x'], { DOCKER_HOST: 'unix:///nowhere.sock' })
    assert.equal(away.code, 69)
    assert.match(
      away.stderr,
      /engine cannot be reached: nothing is there\n {2}it was looked for at unix:\/\/\/nowhere.sock/,
    )
    const nowhere = await build(`${folder}/nowhere`, 'x')
    assert.deepEqual([nowhere.code, nowhere.stderr], [66, `runyard: the folder ${folder}/nowhere does not exist`])
  })

  test('the handlers of the examples run in containers and answer jobs', async () => {
    const [python, node] = await Promise.all([
      build(example('container-python'), 'runyard-test-python:1'),
      build(example('container-node'), 'runyard-test-node:1'),
    ])
    assert.deepEqual([python.code, node.code], [0, 0], `${python.stderr}${node.stderr}`)
    const { server, url, network } = await openedServer(temporaryFolder())
    for (const [image, wanted] of [
      ['runyard-test-python:1', { python: /^3\./ }],
      ['runyard-test-node:1', { node: /^2\d\./ }],
    ] as const) {
      const endpoint = await silentEndpoint(server)
      const { env } = await endpoint.worker()
      const variables = Object.entries(env).filter(([name]) => name.startsWith('RUNPOD_'))
      const inContainer = variables.map(([name, value]) => [name, value.replace(/^http:\/\/[^/]+/, url)] as const)
      await openContainer(network, { image, command: null, env: Object.fromEntries(inContainer) })
      const { status, output } = await runJob(server, endpoint.id, { name: 'Ada' }, 60_000)
      assert.deepEqual([status, output.message], ['COMPLETED', 'Hello, Ada!'])
      for (const [name, version] of Object.entries(wanted)) assert.match(output[name], version)
    }
  })

  test('the server of the examples is ready at once, responds, and ends at a signal', async () => {
    const { code, stderr } = await build(example('container-server'), 'runyard-test-server:1')
    assert.equal(code, 0, stderr)
    const container = await openContainer('bridge', { image: 'runyard-test-server:1', command: null })
    const url = `http://${container.address}:8000`
    const ready = () =>
      fetch(`${url}/ping`).then(
        answer => answer.status === 200,
        () => false,
      )
    await until('the server to be ready', ready)
    assert.deepEqual(await (await fetch(`${url}/hello?name=Ada`)).json(), { message: 'Hello, Ada!' })
    const echo = await fetch(`${url}/echo`, { method: 'POST', body: 'this' })
    assert.deepEqual(await echo.json(), { echo: 'this' })
    assert.equal((await fetch(`${url}/elsewhere`)).status, 404)
    await container.stop()
    assert.equal(await container.exitCode(), 0)
  })

  test('a folder with --container is built at each start, and what has changed is a new version', async () => {
    const dataDir = temporaryFolder()
    const folder = `${temporaryFolder()}/Hello There`
    cpSync(example('container-node'), folder, { recursive: true })
    writeFileSync(`${folder}/Dockerfile`, `FROM ${testImage}\nCOPY handler.mjs .\nCMD ["node", "handler.mjs"]\n`)
    const engineWords = ['--docker', engineEnv.DOCKER_HOST]
    const start = () => startServer({ dataDir, args: ['--worker', folder, '--container', ...engineWords] })
    const imageNow = async (server: Awaited<ReturnType<typeof startServer>>) => {
      const [built] = server.events('image.built')
      assert.match(String(built?.image), /^runyard-folder\/hello-there-[0-9a-f]{8}:[0-9a-f]{12}$/)
      await engine.getImage(String(built?.image)).inspect()
      assert.equal((await ask(server, '/v2/serverless/hellothere')).status, 200)
      return String(built?.image)
    }
    const first = await start()
    const before = await imageNow(first)
    atEnd(async () => {
      const filters = { reference: [before.replace(/:.*/, '')] }
      for (const { RepoTags } of await engine.listImages({ filters })) {
        for (const name of RepoTags ?? []) await engine.getImage(name).remove()
      }
    })
    await first.stop()

    const second = await start()
    assert.equal(await imageNow(second), before, 'nothing has changed')
    await second.stop()

    writeFileSync(`${folder}/handler.mjs`, '// another one\n')
    const third = await start()
    const after = await imageNow(third)
    assert.notEqual(after, before)
    await assert.rejects(engine.getImage(before).inspect(), /no such image/i, 'the old one is gone')
    await third.stop()

    writeFileSync(`${folder}/Dockerfile`, `FROM ${testImage}\nRUN exit 9\n`)
    const failed = await runCommand(
      ['serve', '--port', '0', '--data-dir', dataDir, '--worker', folder, '--container'],
      engineEnv,
    )
    assert.equal(failed.code, 69)
    assert.match(failed.stderr, /--worker .*: the build failed in step 2\/3: RUN exit 9/)
    const off = ['serve', '--port', '0', '--data-dir', dataDir, '--worker', folder, '--container', '--docker', 'off']
    assert.match((await runCommand(off, engineEnv)).stderr, /--container needs a container engine, which --docker off/)
    const none = await runCommand(['serve', '--port', '0', '--data-dir', temporaryFolder(), '--container'], engineEnv)
    assert.match(none.stderr, /--container builds the folders of --worker/)
  })
})
