/** Cancelled jobs on SDKs that cannot stop one: the next job must not wait for a cancelled one. */
import assert from 'node:assert/strict'
import { cpSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { temporaryFolder } from '../support/cleanup.ts'
import { ask, changeEndpoint, makeEndpoint, runJob, submit } from '../support/client.ts'
import { OLD_SDKS, oldSdkPath, oldSdksSkip, python } from '../support/python.ts'
import { fixture, type Server, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const START_MS = 60_000
/** Duration of the cancelled job in its worker: longer than the test. */
const FOR_LONG_S = 600
/** These begin a job that they take while others run only when one of those has ended. */
const LATE_STARTERS = OLD_SDKS.filter(version => /^1\.(7\.[1-9]|8\.)/.test(version))

describe('cancelled jobs on older SDKs', { skip: oldSdksSkip, concurrency: 4 }, () => {
  let server: Server
  let root: string

  before(async () => {
    root = temporaryFolder()
    server = await startServer({ args: ['--process-root', root] })
  })

  for (const version of LATE_STARTERS) {
    test(`${version}: the job after a cancelled one is done by a worker in its place, not after it`, async () => {
      const folder = join(root, version)
      cpSync(fixture('python-worker'), folder, { recursive: true })
      const id = await makeEndpoint(server, {
        folder,
        args: `"${python}" handler.py`,
        env: {
          WIRE_FOLDER: folder,
          WIRE_CAPACITY: '3',
          PYTHONPATH: oldSdkPath(version),
        },
        settings: { workersMax: 1, idleTimeout: 3600 },
      })
      const { workerId } = await runJob(server, id, {}, START_MS)
      const unwanted = await submit(server, id, { sleep: FOR_LONG_S })
      await until('the handler to begin', () => existsSync(join(folder, `begun-${unwanted}`)), START_MS)
      assert.equal((await ask(server, `/v2/${id}/cancel/${unwanted}`, { body: {} })).json.status, 'CANCELLED')
      const next = await runJob(server, id, { next: true }, START_MS)
      assert.deepEqual([next.status, next.retries], ['COMPLETED', undefined])
      assert.notEqual(next.workerId, workerId)
      await changeEndpoint(server, id, { workersMax: 0 })
    })
  }
})
