/** Workers on our own SDK, and the messages to people about a broken one. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { patient } from '../../support/patience.ts'
import { temporaryFolder } from '../support/cleanup.ts'
import {
  ask,
  changeEndpoint,
  graphql,
  healthOf,
  makeEndpoint,
  runJob,
  statusOf,
  submit,
  whenFinal,
} from '../support/client.ts'
import { silentEndpoint } from '../support/raw-worker.ts'
import { root, rootUrl, runCommand, type Server, startServer } from '../support/server.ts'
import { timed, until } from '../support/until.ts'
import { folderChanged, inContainers } from '../support/workers.ts'

/** Images have it where Node finds it by its name. */
const SDK = inContainers ? '@runyard/worker' : `${rootUrl}/packages/worker/index.js`
const one = { workersMax: 1, idleTimeout: 3600 }

let server: Server
/** The folders of these tests lie in here. */
let images: string

before(async () => {
  images = temporaryFolder()
  server = await startServer({ args: ['--process-root', images, '--process-root', root] })
})

/** A folder with this file in it. */
function image(name: string, file: string, source: string): string {
  const folder = join(images, name)
  mkdirSync(folder)
  writeFileSync(join(folder, file), source)
  return folder
}

const NO_SUCH = /^runyard: there is no endpoint, worker or job nosuch \(not found\); there are the endpoints /

describe('the example worker', () => {
  test('it runs jobs', async () => {
    const endpoint = await makeEndpoint(server, { folder: `${root}/examples/hello-node`, settings: one })
    const done = await runJob(server, endpoint, { name: 'wörld 🌍' })
    assert.deepEqual([done.status, done.output.message], ['COMPLETED', 'Hello, wörld 🌍!'])
  })

  test('no job is lost or run on a dead worker while many run on several workers', async () => {
    const settings = { workersMax: 3, scalerType: 'REQUEST_COUNT', scalerValue: 1 }
    const endpoint = await makeEndpoint(server, { folder: `${root}/examples/hello-node`, settings })
    const ids = await Promise.all(Array.from({ length: 60 }, (_, n) => submit(server, endpoint, { sleepMs: n % 20 })))
    const done = await Promise.all(ids.map(id => whenFinal(server, endpoint, id)))
    assert.ok(done.every(({ status, retries }) => status === 'COMPLETED' && retries === undefined))
    assert.deepEqual((await healthOf(server, endpoint)).jobs, {
      completed: 60,
      failed: 0,
      inProgress: 0,
      inQueue: 0,
      retried: 0,
    })
  })
})

describe('a handler on our SDK', () => {
  test('its signal aborts when the job is cancelled, and its worker takes the next job', async () => {
    const folder = image(
      'aborting',
      'handler.mjs',
      `import { writeFileSync } from 'node:fs'
       import { start } from '${SDK}'
       await start({ handler: ({ id, input }, { signal }) => input.quick ? 'quick' : new Promise((_, reject) => {
         const note = name => writeFileSync(process.env.WIRE_FOLDER + name, id)
         note('/begun')
         signal.addEventListener('abort', () => { note('/aborted'); reject(signal.reason) })
       }) })`,
    )
    const endpoint = await makeEndpoint(server, { folder, env: { WIRE_FOLDER: folder }, settings: one })
    const id = await submit(server, endpoint, {})
    await until('the handler to begin', () => existsSync(join(folder, 'begun')))
    const { workerId } = await statusOf(server, endpoint, id)
    await ask(server, `/v2/${endpoint}/cancel/${id}`, { method: 'POST' })
    const { ms } = await timed(() => until('the abort', () => existsSync(join(folder, 'aborted'))))
    assert.ok(ms < patient(1_000), `it took ${ms} ms`)
    const next = await runJob(server, endpoint, { quick: true })
    assert.deepEqual([next.output, next.workerId], ['quick', workerId])
  })

  test('its concurrency bounds what runs at once, and its errors and progress show', async () => {
    const folder = image(
      'busy',
      'handler.mjs',
      `import { existsSync } from 'node:fs'
       import { setTimeout as sleep } from 'node:timers/promises'
       import { start } from '${SDK}'
       let running = 0
       await start({ concurrency: 3, handler: async ({ input }, { progress }) => {
         if (input.fail) throw new TypeError('wörld')
         running += 1
         const atOnce = running
         await progress({ atOnce })
         do await sleep(100); while (!existsSync(process.env.WIRE_FOLDER + '/go'))
         running -= 1
         return { atOnce }
       } })`,
    )
    const endpoint = await makeEndpoint(server, { folder, env: { WIRE_FOLDER: folder }, settings: one })
    const failed = await runJob(server, endpoint, { fail: true })
    assert.equal(failed.status, 'FAILED')
    assert.match(failed.error!, /wörld/)
    const ids = await Promise.all(Array.from({ length: 9 }, () => submit(server, endpoint, {})))
    const told = await until('the progress of three', async () => {
      const seen = await Promise.all(ids.map(id => statusOf(server, endpoint, id)))
      const running = seen.filter(({ output }) => output !== undefined)
      return running.length >= 3 && running
    })
    assert.deepEqual(
      told.map(({ status, output }) => [status, output.atOnce]).sort(),
      [1, 2, 3].map(atOnce => ['IN_PROGRESS', atOnce]),
    )
    writeFileSync(join(folder, 'go'), '')
    const done = await Promise.all(ids.map(id => whenFinal(server, endpoint, id)))
    assert.equal(Math.max(...done.map(({ output }) => output.atOnce)), 3)
  })

  test('a secret reaches the worker by its name, and one that does not exist is named as the reason to wait', async () => {
    await graphql(server, 'mutation { secretCreate(input: { name: "TOKEN", value: "hush" }) { id } }')
    const folder = image(
      'secretive',
      'handler.mjs',
      `import { start } from '${SDK}'
       await start({ handler: () => process.env.TOKEN })`,
    )
    const env = (name: string) => ({ folder, env: { TOKEN: `{{ RUNPOD_SECRET_${name} }}` }, settings: one })
    const known = await makeEndpoint(server, env('TOKEN'))
    assert.equal((await runJob(server, known, {})).output, 'hush')
    const unknown = await makeEndpoint(server, env('NOSUCH'))
    await submit(server, unknown, {})
    const { json } = await ask(server, `/v2/${unknown}/explain`)
    assert.deepEqual([json.cause, /NOSUCH/.test(json.summary)], ['secret_missing', true])
    await graphql(server, 'mutation { secretCreate(input: { name: "NOSUCH", value: "now" }) { id } }')
    await until('the job to be done', async () => (await healthOf(server, unknown)).jobs.completed === 1)
  })
})

describe('why a job waits', () => {
  const explain = async (endpoint: string, job = '') =>
    (await ask(server, `/v2/${endpoint}/explain${job === '' ? '' : `/${job}`}`)).json
  const why = async (id: string) => {
    const { code, stdout, stderr } = await runCommand(['why', id, '--json', '--data-dir', server.dataDir])
    assert.deepEqual([code, stderr], [0, ''])
    return JSON.parse(stdout)
  }

  test('a worker that ends by itself is a crash loop, reported with its exit code and last lines', async () => {
    const folder = image(
      'crashing',
      'handler.mjs',
      `console.error('first line'); console.error('boom: no model'); process.exit(3)`,
    )
    const endpoint = await makeEndpoint(server, { folder, settings: one })
    const job = await submit(server, endpoint, {})
    const seen = await until('the crash loop', async () => {
      const found = await explain(endpoint)
      return found.cause === 'crash_loop' && found
    })
    assert.match(seen.summary, /exited with code 3/)
    assert.deepEqual(seen.evidence, ['first line', 'boom: no model'])
    assert.match(seen.action, /runyard logs/)
    assert.ok(seen.sinceMs <= Date.now())
    for (const row of [await explain(endpoint, job), await why(endpoint), await why(job)]) {
      assert.deepEqual([row.cause, row.evidence], ['crash_loop', seen.evidence])
    }
    assert.equal((await healthOf(server, endpoint)).workers.unhealthy, 1)
    assert.equal((await statusOf(server, endpoint, job)).status, 'IN_QUEUE')
    await changeEndpoint(server, endpoint, { workersMax: 0 })
  })

  test('a fix of the handler and a save of the endpoint end the crash loop at once', async () => {
    const folder = image('mended', 'handler.mjs', 'process.exit(1)')
    const endpoint = await makeEndpoint(server, { folder, settings: one })
    const job = await submit(server, endpoint, {})
    await until(
      'some crashes',
      () => server.events('worker.exited').filter(event => event.endpointId === endpoint).length >= 3,
    )
    writeFileSync(join(folder, 'handler.mjs'), `import { start } from '${SDK}'\nawait start({ handler: () => 'well' })`)
    await folderChanged(folder)
    await changeEndpoint(server, endpoint, { env: [{ key: 'VERSION', value: '2' }] })
    const { value, ms } = await timed(() => whenFinal(server, endpoint, job))
    assert.equal(value.output, 'well')
    assert.ok(ms < patient(3_000), `it took ${ms} ms`)
  })

  test('a failed fitness check is reported with its name and reason, and no job is taken', async () => {
    const folder = image(
      'unfit',
      'handler.mjs',
      `import { registerFitnessCheck, start } from '${SDK}'
       registerFitnessCheck(function modelIsThere() { throw new Error('no model in /models') })
       await start({ handler: () => 'never' })`,
    )
    const endpoint = await makeEndpoint(server, { folder, settings: one })
    const job = await submit(server, endpoint, {})
    const { summary } = await until('the failed check', async () => {
      const found = await explain(endpoint)
      return found.cause === 'fitness_failed' && found
    })
    assert.match(summary, /modelIsThere.*Error: no model in \/models/)
    assert.equal((await statusOf(server, endpoint, job)).status, 'IN_QUEUE')
    await changeEndpoint(server, endpoint, { workersMax: 0 })
  })

  test('a missing Python module is named with the command that installs it', async () => {
    const source = `import sys\nsys.stderr.write("ModuleNotFoundError: No module named 'torch'\\n")\nsys.exit(1)\n`
    const folder = image('lacking', 'handler.py', source)
    const endpoint = await makeEndpoint(server, { folder, settings: one })
    await submit(server, endpoint, {})
    const { action } = await until('the advice', async () => {
      const found = await explain(endpoint)
      return found.cause === 'crash_loop' && found
    })
    assert.match(action, /install the Python module 'torch'.*pip install torch/)
    await changeEndpoint(server, endpoint, { workersMax: 0 })
  })

  test('two workers that want one fixed port: why names the variable and the port, and what to do', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const port = String((other.address() as AddressInfo).port)
    await new Promise(resolve => other.close(resolve))
    const source = `import { createServer } from 'node:net'
      import { start } from '${SDK}'
      createServer().listen(Number(process.env.VLLM_PORT), '127.0.0.1', () => start({ handler: () => new Promise(() => {}) }))`
    const folder = image('fixed-port', 'handler.mjs', source)
    const settings = { workersMax: 2, scalerType: 'REQUEST_COUNT', scalerValue: 1 }
    const endpoint = await makeEndpoint(server, { folder, env: { VLLM_PORT: port }, settings })
    await submit(server, endpoint, {})
    await until('the first worker to work', async () => (await healthOf(server, endpoint)).jobs.inProgress === 1)
    const second = await submit(server, endpoint, {})
    // While the worker still runs, the note names the port by the output of the worker alone.
    const note = await until('the note on its exit', async () =>
      (await explain(endpoint, second)).notes.find((text: string) => text.includes('exited with code')),
    )
    assert.match(
      note,
      new RegExp(
        `exited with code 1; port ${port}, which its variable VLLM_PORT names, is in use by (?:another worker|worker \\w+ of the same endpoint)`,
      ),
    )
    assert.match(note, /set workersMax to 1/)
    await changeEndpoint(server, endpoint, { workersMax: 0 })
  })

  test('a folder that is missing, lies elsewhere or holds no handler is refused when it is saved', async () => {
    mkdirSync(join(images, 'empty'))
    symlinkSync(temporaryFolder(), join(images, 'elsewhere'))
    const wrong: [path: string, problem: RegExp][] = [
      [join(images, 'nosuch'), /does not exist/],
      [join(images, 'empty'), /has no handler\.py, .* or main\.py, there or in src, and no command is given/],
      [join(images, 'elsewhere'), /is outside of the process roots/],
      ['/usr', /is outside of the process roots/],
    ]
    for (const [folder, problem] of wrong) await assert.rejects(makeEndpoint(server, { folder }), problem)
  })

  test('an endpoint with max 0 is paused, and resumes when it is raised', async () => {
    const endpoint = await makeEndpoint(server, { folder: `${root}/examples/hello-node`, settings: { workersMax: 0 } })
    const job = await submit(server, endpoint, {})
    const { cause, action, sinceMs } = await explain(endpoint, job)
    assert.deepEqual([cause, action], ['paused', 'set workersMax to 1 or more'])
    assert.ok(Math.abs(Date.now() - sinceMs) < patient(5_000))
    await changeEndpoint(server, endpoint, { workersMax: 1 })
    assert.equal((await whenFinal(server, endpoint, job)).status, 'COMPLETED')
    assert.equal((await explain(endpoint, job)).cause, 'finished')
    assert.equal((await explain(endpoint)).cause, 'nothing_waits')
  })

  test('a worker that starts is shown with since when, and a busy one as the maximum reached', async () => {
    const silent = await silentEndpoint(server)
    const worker = await silent.worker()
    const job = await submit(server, silent.id, {})
    const starting = await explain(silent.id, job)
    assert.equal(starting.cause, 'worker_starting')
    assert.ok(starting.summary.includes(worker.id) && Math.abs(Date.now() - starting.sinceMs) < patient(10_000))
    assert.equal((await healthOf(server, silent.id)).workers.initializing, 1)
    await worker.take()
    const second = await submit(server, silent.id, {})
    assert.equal((await explain(silent.id, job)).cause, 'running')
    assert.equal((await explain(silent.id, second)).cause, 'max_reached')
  })

  test('why without an id covers all endpoints, and reports what it cannot find or reach', async () => {
    const all = await runCommand(['why', '--data-dir', server.dataDir, '--json'])
    const rows = all.stdout
      .trim()
      .split('\n')
      .map(line => JSON.parse(line))
    assert.ok(rows.length >= 5 && rows.every(({ kind, cause }) => kind === 'endpoint' && typeof cause === 'string'))
    const unknown = await runCommand(['why', 'nosuch', '--data-dir', server.dataDir])
    assert.equal(unknown.code, 66)
    assert.match(unknown.stderr, NO_SUCH)
    const stranger = await runCommand(['why', '--url', server.url, '--api-key', 'rpa_wrong'])
    assert.equal(stranger.code, 77)
    const nobody = await runCommand(['why', '--data-dir', temporaryFolder()])
    assert.equal(nobody.code, 69)
    assert.match(nobody.stderr, /no server runs on/)
  })
})

describe('logs', () => {
  test('they are found by the job, the worker and the endpoint, and followed until the worker ends', async () => {
    const folder = image(
      'talking',
      'handler.mjs',
      `import { start } from '${SDK}'
       console.log('loading')
       await start({ handler: ({ input }) => console.log('working on ' + input.name) })`,
    )
    const endpoint = await makeEndpoint(server, { folder, settings: one })
    const { id: first, workerId = '' } = await runJob(server, endpoint, { name: 'one' })
    const following = runCommand(['logs', workerId, '--follow', '--json', '--data-dir', server.dataDir])
    const second = await submit(server, endpoint, { name: 'two' })
    await whenFinal(server, endpoint, second)

    const logs = async (id: string, ...more: string[]) => {
      const { code, stdout, stderr } = await runCommand(['logs', id, '--json', '--data-dir', server.dataDir, ...more])
      assert.deepEqual([code, stderr], [0, ''])
      return read(stdout)
    }
    const read = (text: string) =>
      text
        .split('\n')
        .filter(line => line !== '')
        .map(line => JSON.parse(line))
    const said = (rows: { line: string; jobId: string | null }[], word: string) =>
      rows.filter(({ line }) => line.includes(word))
    const ofJob = await logs(first)
    assert.deepEqual([said(ofJob, 'working on one').length, said(ofJob, 'two').length], [1, 0])
    // The output of containers is copied: what was printed just before the job may arrive in it.
    if (!inContainers) assert.equal(said(ofJob, 'loading').length, 0)
    for (const id of [workerId, endpoint]) {
      const rows = await logs(id)
      assert.ok(rows.every(row => row.workerId === workerId))
      assert.equal(said(rows, 'loading').length, 1)
      assert.deepEqual(
        [said(rows, 'working on one')[0]?.jobId, said(rows, 'working on two')[0]?.jobId],
        [first, second],
      )
    }
    assert.equal((await logs(workerId, '--tail', '1')).length, 1)
    await changeEndpoint(server, endpoint, { workersMax: 0 })
    const followed = await following
    assert.equal(followed.code, 0)
    const rows = read(followed.stdout)
    assert.deepEqual([said(rows, 'working on one').length, said(rows, 'working on two').length], [1, 1])
  })

  test('an unknown id is reported with exit code 66', async () => {
    const { code, stderr } = await runCommand(['logs', 'nosuch', '--data-dir', server.dataDir])
    assert.equal(code, 66)
    assert.match(stderr, NO_SUCH)
  })
})
