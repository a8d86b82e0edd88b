/** The runtime of apps in containers of images of their own. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { needsRuntime, withRuntimePath } from '../../../src/drivers/docker/app-runtime.ts'
import { PLAIN_WORKER } from '../../support/worker-spec.ts'

test('only workers of apps in images of their own get it', () => {
  const env = { RUNPOD_TASK_TOKEN: 'token' }
  assert.equal(needsRuntime({ image: 'python:3.12-slim', env }), true)
  assert.equal(needsRuntime({ image: 'runpod/task:py3.12-latest', env }), false)
  assert.equal(needsRuntime({ image: 'python:3.12-slim', env: {} }), false)
})

test('it comes before the folders of packages that the user names, or else the image', () => {
  const path = (env: Readonly<Record<string, string>>, ofImage: readonly string[]) =>
    withRuntimePath({ ...PLAIN_WORKER, env } as never, ofImage).env.PYTHONPATH
  assert.equal(path({}, ['A=b']), '/runyard/runtime')
  assert.equal(path({}, ['PYTHONPATH=/site']), '/runyard/runtime:/site')
  assert.equal(path({ PYTHONPATH: '/mine' }, ['PYTHONPATH=/site']), '/runyard/runtime:/mine')
})
