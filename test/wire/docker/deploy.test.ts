/** `runyard deploy`: from the name of a worker to the answer of its first request, with an image of our own. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { patient } from '../../support/patience.ts'
import { atEnd, temporaryFolder } from '../support/cleanup.ts'
import { ask } from '../support/client.ts'
import { startContainerServer } from '../support/containers.ts'
import { engine, engineEnv, probeSkip, testImage } from '../support/probe.ts'
import { root, runCommand, type Server } from '../support/server.ts'

const IMAGE = 'runyard-test-deployed:1'

describe('a ready worker', { skip: probeSkip, timeout: patient(180_000) }, () => {
  let server: Server
  before(async () => {
    const words = ['build', `${root}/examples/container-python`, '-t', IMAGE, '--build-arg', `BASE=${testImage}`]
    const { code, stderr } = await runCommand(words, engineEnv)
    assert.equal(code, 0, stderr)
    atEnd(() =>
      engine
        .getImage(IMAGE)
        .remove({ force: true })
        .catch(() => {}),
    )
    server = await startContainerServer()
  })

  const deploy = (...words: string[]) =>
    runCommand(['deploy', ...words], { RUNYARD_URL: server.url, RUNYARD_API_KEY: server.apiKey })

  test('is deployed, and answers its first request', async () => {
    const catalog = join(temporaryFolder(), 'workers.json')
    const env = [
      { name: 'GREETING', about: 'How it greets', default: 'Hello' },
      { name: 'RUNPOD_SKIP_AUTO_SYSTEM_CHECKS', about: 'Starts at once', default: 'true' },
    ]
    const sizes = { gpuMemoryGb: 0, diskGb: 5, timeoutMs: 60_000 }
    const words = { title: 'Greeter', about: 'Says hello', image: IMAGE, openAi: false }
    writeFileSync(catalog, JSON.stringify({ greeter: { ...words, ...sizes, env, input: { name: 'Ada' } } }))
    const { code, stdout, stderr } = await deploy('greeter', '--catalog', catalog, '--set', 'GREETNG=Hi', '--run')
    assert.equal(code, 0, stderr)
    assert.match(stderr, /GREETNG is set; did you mean GREETING\?/)
    assert.match(stdout, /^Endpoint greeter \(\w+\) runs runyard-test-deployed:1\n/)
    assert.match(stdout, /"message": "Hello, Ada!"/)
    const { endpoints } = (await ask(server, '/v2/serverless')).json
    const [{ env: given, disk, timeout }] = endpoints
    assert.deepEqual([given.GREETING, given.GREETNG, disk, timeout], ['Hello', 'Hi', 5, 60_000])
  })

  test('that needs a GPU is not deployed by chance on a machine without one', async () => {
    const refused = await deploy('vllm')
    assert.equal(refused.code, 65)
    assert.match(refused.stderr, /^runyard: vLLM needs a GPU with 16 GB, and this machine has no GPU; .*--gpu none/)
    const chosen = await deploy('vllm', '--gpu', 'RTX 4090', '--set', 'MODEL_NAME=a/b', '--name', 'llm', '--json')
    assert.equal(chosen.code, 0, chosen.stderr)
    const endpoint = JSON.parse(chosen.stdout)
    assert.deepEqual([endpoint.name, endpoint.gpu.pools, endpoint.env.MODEL_NAME], ['llm', ['ADA_24'], 'a/b'])
  })

  test('with a mistyped name, and a wrong catalogue, are said', async () => {
    const typo = await deploy('comfy')
    assert.deepEqual([typo.code, /did you mean comfyui\?$/.test(typo.stderr)], [66, true], typo.stderr)
    const catalog = join(temporaryFolder(), 'workers.json')
    writeFileSync(catalog, '{"a": {}}')
    const wrong = await deploy('a', '--catalog', catalog)
    assert.equal(wrong.code, 65)
    assert.match(wrong.stderr, /is not a valid catalog:\n {2}a: "title" must be a text\n/)
  })
})
