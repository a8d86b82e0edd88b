/** A dev session of RunPod's SDK 2.0 against a server that speaks HTTPS with a certificate of its own. */
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
import { fixture, runCommand, startServer } from '../support/server.ts'

test('functions, generators, nested calls and routes run on this server, with one line of preparation', {
  skip: sdk2Skip,
  timeout: patient(120_000),
}, async () => {
  const path = `${dirname(sdk2)}${delimiter}${process.env.PATH}`
  const server = await startServer({ args: ['--tls-self-signed'], env: { PATH: path } })
  const { stdout: variables } = await runCommand(['sdk', 'env', '--json', '--data-dir', server.dataDir])
  const project = temporaryFolder()
  copyFileSync(join(fixture('python-app'), 'main.py'), join(project, 'main.py'))
  const { stdout } = await promisify(execFile)(
    sdk2,
    ['-c', 'from runpod.rp_cli.main import run; run()', 'flash', 'dev', 'main.py', '--once'],
    { cwd: project, env: { PATH: path, HOME: project, ...JSON.parse(variables) } },
  )
  assert.match(stdout, /sum 3 list \[0, 1, 2\] nested 15/)
  assert.match(stdout, /word \{'word': 'alpha'\}/)
  assert.match(stdout, /own key False/)
  const ca = readFileSync(join(server.dataDir, 'tls', 'certificate.pem'), 'utf8')
  const left = await secureCall(server, '/v2/serverless', { ca })
  assert.deepEqual(JSON.parse(left.text).endpoints, [])
})
