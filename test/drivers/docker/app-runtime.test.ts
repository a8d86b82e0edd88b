/** The runtime of apps in containers of images of their own. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { needsRuntime, withRuntimePath } from '../../../src/drivers/docker/app-runtime.ts'
import { ContainerCalls } from '../../../src/drivers/docker/container-calls.ts'
import type { Engine, EngineCall } from '../../../src/drivers/docker/engine/engine.ts'
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

test('a container into which it cannot be copied is removed at once, and nothing is read any more', async () => {
  const calls: string[] = []
  let closed: Promise<unknown> | undefined
  const call = async (asked: EngineCall): Promise<unknown> => {
    calls.push(`${asked.method} ${asked.path}`)
    if (asked.path === '/containers/create') return { Id: 'c' }
    if (asked.path !== '/containers/c/archive') return {}
    closed = once(asked.archive!, 'close')
    throw new Error('no space left on device')
  }
  const engine = { call, facts: null } as unknown as Engine
  const spec = { ...PLAIN_WORKER, image: 'python:3.12-slim', args: '', env: { RUNPOD_TASK_TOKEN: 'token' } }
  const connection = { name: 'runyard', extraHosts: [], serving: 'direct' } as const
  const made = new ContainerCalls(engine, 'i', 'packages/runtime').create(
    { spec, app: null } as never,
    'python:3.12-slim',
    connection as never,
  )
  await assert.rejects(made, /no space left/)
  assert.equal(calls.at(-1), 'DELETE /containers/c')
  await closed
})
