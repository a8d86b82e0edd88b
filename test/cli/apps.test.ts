/** `runyard apps`: what an app has, and its deletion with everything in it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { activate, createApp, createEnvironment, makeBuild, openAppRig, saveFunction } from '../support/apps.ts'
import { commandsOn } from '../support/command-line.ts'

test('an app is listed, shown with what runs, and deleted by environment or as a whole', async t => {
  const { rig } = await openAppRig(t)
  const runyard = commandsOn(rig)
  assert.match((await runyard('apps', 'list')).stdout, /there are no apps/)
  const app = await createApp(rig, 'hello')
  const [live, staging] = [await createEnvironment(rig, app, 'default'), await createEnvironment(rig, app, 'staging')]
  const buildId = await makeBuild(rig, app, { 'main.py': 'x = 1' })
  await activate(rig, live, buildId)
  const endpoint = await saveFunction(rig, { name: 'greet', environmentId: live, buildId }, { workersMin: 1 })
  const other = await saveFunction(rig, { name: 'greet', environmentId: staging, buildId })
  await rig.clock.advance(1_000)

  const listed = (await runyard('apps', 'list')).stdout
  assert.match(listed, /ID +NAME +ENVIRONMENTS +ENDPOINTS +AGE\n/)
  assert.match(listed, new RegExp(`${app} +hello +default, staging +2 `))
  const shown = (await runyard('apps', 'get', 'hello')).stdout.split('\n')
  assert.match(shown[1]!, new RegExp(`^default +${endpoint} +greet +${buildId} +1$`))
  assert.match(shown[2]!, new RegExp(`^staging +${other} +greet +${buildId} +0$`))
  assert.match((await runyard('apps', 'builds', 'hello')).stdout, new RegExp(`${buildId} .* default\\n`))
  assert.equal(JSON.parse((await runyard('apps', 'get', 'hello', '--json')).stdout).id, app)

  const wrong = await runyard('apps', 'delete', 'hello', '--env', 'production')
  assert.deepEqual([wrong.code, wrong.stderr.includes('it has default, staging')], [66, true], wrong.stderr)
  const one = await runyard('apps', 'delete', 'hello', '--env', 'staging')
  assert.deepEqual([one.code, one.stdout], [0, 'environment staging of app hello is deleted\n'], one.stderr)
  assert.equal((await rig.ask('GET', `/v2/serverless/${other}`)).status, 404)
  assert.equal((await rig.ask('GET', `/v2/serverless/${endpoint}`)).status, 200)
  const whole = await runyard('apps', 'delete', 'hello')
  assert.deepEqual([whole.code, whole.stdout], [0, 'app hello is deleted\n'], whole.stderr)
  assert.equal((await rig.ask('GET', `/v2/serverless/${endpoint}`)).status, 404)
  assert.match((await runyard('apps', 'list')).stdout, /there are no apps/)
})
