/** Tasks of RunPod's SDK 2.0, as the SDK itself runs them, against a server that speaks HTTPS. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { copyFileSync, readFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { patient } from '../../support/patience.ts'
import { temporaryFolder } from '../support/cleanup.ts'
import { secureCall } from '../support/https.ts'
import { sdk2, sdk2Skip } from '../support/python.ts'
import { fixture, runCommand, type Server, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

test('a task returns a value, fails with its traceback, shares a volume and ends in time', {
  skip: sdk2Skip,
  timeout: patient(180_000),
}, async () => {
  const path = `${dirname(sdk2)}${delimiter}${process.env.PATH}`
  const server = await startServer({ args: ['--tls-self-signed'], env: { PATH: path } })
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
  assert.match(stdout, /^error RemoteExecutionError True$/m)
  assert.match(stdout, /^met True own ports True$/m)
  assert.match(stdout, /^late$/m)
  const ca = readFileSync(join(server.dataDir, 'tls', 'certificate.pem'), 'utf8')
  const ask = (path: string, headers: Readonly<Record<string, string>> = {}) =>
    secureCall(server, path, { ca, headers })
  await guardedProgram(server, ca)
  const [, ended] = /^pod .*?\/tasks\/(\w+)$/m.exec(stdout)!
  assert.equal((await ask(program(ended!, '/result'))).status, 404)
  await until(
    'the task that nobody asks for has ended, and its client has deleted each other one',
    async () => JSON.parse((await ask('/v2/pods')).text).pods.length === 0,
  )
})

/** The address of the program of a task. */
function program(id: string, below: string): string {
  return `/tasks/${id}-8080.proxy.runpod.net${below}`
}

/** Starts a task, asks for its result with its token, with others and by other paths, and ends it. */
async function guardedProgram(server: Server, ca: string): Promise<void> {
  const version = 'import sys; print("%d.%d" % sys.version_info[:2])'
  const { stdout: python } = await promisify(execFile)(sdk2, ['-c', version])
  const token = 'the-token-of-this-task-and-of-no-other'
  const env = [{ key: 'RUNPOD_TASK_TOKEN', value: token }]
  const input = {
    name: 'task-guarded',
    imageName: `runpod/task:py${python.trim()}-latest`,
    instanceId: 'cpu3c-1-2',
    env,
  }
  const deploy = 'mutation ($input: deployCpuPodInput!) { deployCpuPod(input: $input) { id } }'
  const graphql = async (query: string, variables: object) => {
    const headers = { 'content-type': 'application/json' }
    return JSON.parse((await secureCall(server, '/graphql', { ca, headers, body: { query, variables } })).text)
  }
  const long: string = (await graphql(deploy, { input })).data.deployCpuPod.id
  const [, id] = /\/tasks\/(\w+)$/.exec(long)!
  const ask = async (below: string, bearer: string) =>
    (await secureCall(server, program(id!, below), { ca, headers: { authorization: `Bearer ${bearer}` } })).status
  await until('the program answers', async () => (await ask('/ping', 'none')) === 200)
  assert.equal(await ask('/result', token), 200)
  assert.equal(await ask('/result', 'not-the-token-of-this-task'), 401)
  assert.equal(await ask('/result', server.apiKey), 401)
  assert.equal(await ask('/../../v2/pods', 'not-the-token-of-this-task'), 401)
  assert.equal(await ask('/../../v2/pods', token), 404)
  const end = await graphql('mutation ($id: String!) { podTerminate(input: { podId: $id }) }', { id: long })
  assert.deepEqual(end, { data: { podTerminate: null } })
}
