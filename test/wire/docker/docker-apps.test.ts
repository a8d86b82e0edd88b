/** Apps of RunPod's SDK 2.0 in containers: the runtime and the build are mounted, and functions call others. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { engineAt, engineUrl, noDocker, workerImage } from '../../support/docker.ts'
import { patient } from '../../support/patience.ts'
import { atEnd, temporaryFolder } from '../support/cleanup.ts'
import { startContainerServer } from '../support/containers.ts'
import { secureCall } from '../support/https.ts'
import { sdk2, sdk2Skip } from '../support/python.ts'
import { fixture, runCommand } from '../support/server.ts'

const run = promisify(execFile)

/** Packages that the SDK puts beside a function. */
const PACKAGES = ['aiohttp', 'aiohttp-retry', 'backoff', 'cloudpickle', 'py-cpuinfo', 'requests', 'tomli', 'tomlkit']

const MAIN = `
import os
import sys

import runpod

app = runpod.App("boxed")


@app.queue(name="adder", cpu="cpu3c-1-2")
def add(a, b):
    return [a + b, os.getcwd(), runpod.__file__, os.access("main.py", os.W_OK)]


@app.queue(name="nested", cpu="cpu3c-1-2")
async def nested(value):
    return [sys.platform, (await add.remote.aio(value, 10))[0]]


@app.queue(name="own", cpu="cpu3c-1-2", image="${workerImage}")
def own():
    return [runpod.__file__, os.path.exists("/opt/python")]
`

/** The packages in a folder, as the first deploy of the SDK would leave them. */
async function packages(): Promise<string> {
  const [wheels, folder] = [temporaryFolder(), join(temporaryFolder(), 'packages')]
  mkdirSync(folder)
  await run(sdk2, [fixture('python-wheels.py'), wheels, ...PACKAGES, 'tqdm-loggable'])
  for (const wheel of readdirSync(wheels)) await run(sdk2, ['-m', 'zipfile', '-e', join(wheels, wheel), folder])
  const { stdout } = await run(sdk2, ['-c', 'import os, runpod; print(os.path.dirname(runpod.__file__))'])
  cpSync(stdout.trim(), join(folder, 'runpod'), { recursive: true, filter: from => !from.includes('__pycache__') })
  return folder
}

test('functions run in containers of any image with Python, with the runtime and the build for reading alone', {
  skip: noDocker || sdk2Skip,
  timeout: patient(180_000),
}, async () => {
  const version = (await run(sdk2, ['-c', 'import sys; print("%d.%d" % sys.version_info[:2])'])).stdout.trim()
  const [repository, tag] = ['runyard-test-apps', `${version}-slim`]
  const engine = engineAt(engineUrl)
  await engine.getImage(workerImage).tag({ repo: repository, tag })
  atEnd(() =>
    engine
      .getImage(`${repository}:${tag}`)
      .remove()
      .catch(() => {}),
  )
  const args = ['--tls-self-signed', '--app-image', `${repository}:{python}-slim`, '--processes', 'off']
  const [server, folder] = await Promise.all([startContainerServer({ args }), packages()])
  const { stdout: variables } = await runCommand(['sdk', 'env', '--json', '--data-dir', server.dataDir])
  const project = temporaryFolder()
  writeFileSync(join(project, 'main.py'), MAIN)
  const path = `${dirname(sdk2)}${delimiter}${process.env.PATH}`
  const env = { PATH: path, HOME: project, TMPDIR: temporaryFolder(), PACKAGES: folder, ...JSON.parse(variables) }
  const rp = [join(fixture('python-deployed'), 'rp.py'), 'flash', 'deploy', '.', '--python-version', version]
  await run(sdk2, rp, { cwd: project, env })

  const ca = readFileSync(join(server.dataDir, 'tls', 'certificate.pem'), 'utf8')
  const call = async (name: string, input: object) => {
    const headers = { 'x-flash-app': 'boxed', 'x-flash-environment': 'default', 'x-flash-endpoint': name }
    const answer = await secureCall(server, '/v2/flash/runsync?wait=90000', { ca, headers, body: { input } })
    const { output, error } = JSON.parse(answer.text)
    return output ?? error ?? answer.text
  }
  const built = '/runyard/build'
  const sdk = `${built}/env/runpod/__init__.py`
  assert.deepEqual(await call('adder', { a: 1, b: 2 }), [3, built, sdk, false])
  assert.deepEqual(await call('nested', { value: 5 }), ['linux', 15])
  assert.deepEqual(await call('own', { __empty: true }), [sdk, true])
})
