/** Workers of apps of RunPod's SDK 2.0 that are processes of the machine: who may run them, and where they call. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runtimeImage } from '../../../src/core/endpoints/runtime-image.ts'
import type { OwnerId } from '../../../src/core/ids.ts'
import { openRig, type Rig } from '../../support/rig.ts'

const IMAGE = 'runpod/queue:py3.11-latest'
const PYTHON = { kind: 'python_missing', python: '3.14', found: ['3.10', '3.11'] } as const

const onMachine = (image: string) => runtimeImage(image) !== null

const saved = (rig: Rig, imageName: string, key?: string) => {
  const query = 'mutation($input: EndpointInput!) { saveEndpoint(input: $input) { id } }'
  const template = { name: 'app-add', imageName, containerDiskInGb: 10, dockerArgs: '', env: [] }
  const body = { query, variables: { input: { name: 'add', instanceIds: ['cpu3c-1-2'], volumes: [], template } } }
  return rig.ask('POST', '/graphql', { body, ...(key !== undefined && { key }) })
}

test('only the operator runs apps as processes, and in containers every account may', async t => {
  const rig = await openRig(t, { runsOnMachine: onMachine })
  const key = await rig.addKey('rpa_stranger', { owner: 'user_stranger' as OwnerId })
  const reading = await rig.addKey('rpa_writer', {
    scope: { type: 'restricted', management: 'write', jobs: 'write' },
  })
  assert.match((await saved(rig, IMAGE, key)).text, /are run only for the operator's account/)
  assert.match((await saved(rig, IMAGE, reading)).text, /only a key of the operator's account that has all rights/)
  assert.match((await saved(rig, IMAGE)).text, /"saveEndpoint":\{"id"/)
  const other = await openRig(t)
  const stranger = await other.addKey('rpa_stranger', { owner: 'user_stranger' as OwnerId })
  assert.match((await saved(other, IMAGE, stranger)).text, /"saveEndpoint":\{"id"/)
})

test('an endpoint whose Python the machine lacks is refused where it is saved, with those that it has', async t => {
  const rig = await openRig(t, {
    runsOnMachine: onMachine,
    check: image => (runtimeImage(image)?.python === '3.14' ? PYTHON : null),
  })
  const refused = await saved(rig, 'runpod/queue:py3.14-latest')
  assert.match(refused.text, /the app needs Python 3\.14, which this machine lacks; it has 3\.10, 3\.11/)
  assert.match((await saved(rig, IMAGE)).text, /"saveEndpoint":\{"id"/)
})
