/**
 * A real server with sleep hooks, as its caller has it: it has given its memory back while it is frozen, and has it
 * again for its next request.
 */
import assert from 'node:assert/strict'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../support/cleanup.ts'
import { ask, makeEndpoint } from '../support/client.ts'
import { fixture, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const HELD = 64 * 1024 * 1024

test('a server sleeps before it is frozen and wakes for the next request, also after a kill', async t => {
  let server = await startServer()
  t.after(() => server.stop())
  const id = await makeEndpoint(server, {
    folder: fixture('server-sleeps'),
    env: { RUNYARD_SLEEP_URL: '/sleep?level=1', RUNYARD_WAKE_URL: '/wake' },
    settings: {
      type: 'LB',
      scalerType: 'REQUEST_COUNT',
      scalerValue: 4,
      workersMax: 1,
      idleTimeout: 1,
      flashBootType: 'FLASHBOOT',
    },
  })
  const first = (await ask(server, `/lb/${id}/memory`)).json
  assert.deepEqual([first.held, first.heldAfter], [HELD, []])
  for (const path of ['sleep', '%73leep?level=1', 'a/..%2fwake', '/wake']) {
    const refused = await ask(server, `/lb/${id}/${path}`, { body: {} })
    assert.equal(refused.status, 404, path)
    assert.match(refused.text, /for the server alone/)
  }
  await until('it to be frozen', () => server.events('worker.moved').some(({ to }) => to === 'FROZEN'))
  const second = (await ask(server, `/lb/${id}/memory`)).json
  const once = [
    ['/sleep?level=1', 0],
    ['/wake', HELD],
  ]
  assert.deepEqual(second, { held: HELD, heldAfter: once, pid: first.pid })

  await until(
    'it to be frozen again',
    () => server.events('worker.moved').filter(({ to }) => to === 'FROZEN').length === 2,
  )
  await server.kill9()
  server = await startServer({ dataDir: server.dataDir, port: server.port })
  const third = (await ask(server, `/lb/${id}/memory`)).json
  assert.deepEqual([third.held, third.pid], [HELD, first.pid])
})

test('one card serves two models in turn: each has it alone, both stay, and a kill of the server between changes nothing', async t => {
  const folder = temporaryFolder()
  const tool = join(folder, 'nvidia-smi')
  writeFileSync(tool, "#!/bin/sh\ncase $1 in --query*) echo '0, GPU-one, NVIDIA L4, 23034, 550.54.15' ;; esac\n")
  chmodSync(tool, 0o755)
  const options = {
    args: ['--process-root', fixture(''), '--dwell', '1'],
    env: { PATH: `${folder}:${process.env.PATH}` },
  }
  let server = await startServer(options)
  t.after(() => server.stop())
  const model = () =>
    makeEndpoint(server, {
      folder: fixture('server-on-card'),
      env: { RUNYARD_SLEEP_URL: '/sleep', RUNYARD_WAKE_URL: '/wake', CARD: join(folder, 'card') },
      settings: {
        type: 'LB',
        scalerType: 'REQUEST_COUNT',
        scalerValue: 4,
        workersMax: 1,
        idleTimeout: 3600,
        flashBootType: 'FLASHBOOT',
        instanceIds: undefined,
        gpuIds: 'AMPERE_24',
      },
    })
  const models = [await model(), await model()]
  const answers = async () => {
    const found: { pid: number; hasCard: boolean }[] = []
    for (const id of models) found.push((await ask(server, `/lb/${id}/who`)).json)
    assert.deepEqual(
      found.map(({ hasCard }) => hasCard),
      [true, true],
    )
    return found.map(({ pid }) => pid)
  }
  const first = await answers()
  assert.deepEqual(await answers(), first)
  await server.kill9()
  server = await startServer({ ...options, dataDir: server.dataDir, port: server.port })
  assert.deepEqual(await answers(), first)
  assert.deepEqual(server.events('worker.exited'), [])
})
