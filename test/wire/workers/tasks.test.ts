/** Tasks of RunPod's SDK 2.0, as the SDK itself runs them, against a server that speaks HTTPS. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { copyFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { patient } from '../../support/patience.ts'
import { caged, cageSkip } from '../support/cages.ts'
import { temporaryFolder } from '../support/cleanup.ts'
import { secureCall } from '../support/https.ts'
import { sdk2, sdk2Skip } from '../support/python.ts'
import { fixture, root, runCommand, type Server, startServer } from '../support/server.ts'
import { authorityOf, programPath, startTask } from '../support/tasks.ts'
import { until } from '../support/until.ts'

test('a task returns a value, fails with its traceback, shares a volume and ends in time', {
  skip: sdk2Skip || cageSkip,
  timeout: patient(180_000),
}, async () => {
  const path = `${dirname(sdk2)}${delimiter}${process.env.PATH}`
  const server = await startServer({
    args: ['--tls-self-signed', ...caged(`${root}/packages`, dirname(dirname(sdk2)))],
    env: { PATH: path },
  })
  const { stdout: variables } = await runCommand(['sdk', 'env', '--json', '--data-dir', server.dataDir])
  const project = temporaryFolder()
  copyFileSync(join(fixture('python-app'), 'tasks.py'), join(project, 'main.py'))
  const { stdout } = await promisify(execFile)(
    sdk2,
    ['-c', 'from runpod.rp_cli.main import run; run()', 'flash', 'dev', 'main.py', '--once'],
    {
      cwd: project,
      env: { PATH: path, HOME: project, ...JSON.parse(variables) },
    },
  )
  assert.match(stdout, /printed by the task/)
  assert.match(stdout, /^set \[9, 81\]$/m)
  assert.match(stdout, /^array ndarray float32 \[0\.0, 1\.0, 4\.0, 9\.0\]$/m)
  assert.match(stdout, /^generator \[\{0\}, \{1\}, \{2\}\]$/m)
  assert.match(stdout, /^error RemoteExecutionError True$/m)
  assert.match(stdout, /^met True own ports True$/m)
  assert.match(stdout, /^late$/m)
  assert.match(stdout, /^inner 49 True rpw_$/m, 'a task started another one from its cage, with its volume')
  const ca = authorityOf(server)
  const ask = (path: string, headers: Readonly<Record<string, string>> = {}) =>
    secureCall(server, path, { ca, headers })
  await guardedProgram(server)
  const [, ended] = /^pod .*?\/tasks\/(\w+)$/m.exec(stdout)!
  assert.equal((await ask(programPath(ended!, '/result'))).status, 404)
  await until(
    'the task that nobody asks for has ended, and its client has deleted each other one',
    async () => JSON.parse((await ask('/v2/pods')).text).pods.length === 0,
  )
})

/** Asks a task for its result with its token, with others and by other paths, and ends it. */
async function guardedProgram(server: Server): Promise<void> {
  const version = 'import sys; print("%d.%d" % sys.version_info[:2])'
  const { stdout: python } = await promisify(execFile)(sdk2, ['-c', version])
  const task = await startTask(server, { imageName: `runpod/task:py${python.trim()}-latest` })
  const status = async (path: string, bearer?: string) => (await task.ask(path, undefined, bearer)).status
  await until('the program answers', async () => (await status('/ping', 'none')) === 200)
  assert.equal(await status('/result'), 200)
  assert.equal(await status('/result', 'not-the-token-of-this-task'), 401)
  assert.equal(await status('/result', server.apiKey), 401)
  assert.equal(await status('/../../v2/pods', 'not-the-token-of-this-task'), 401)
  assert.equal(await status('/../../v2/pods'), 404)
  assert.deepEqual(await task.end(), { data: { podTerminate: null } })
}
