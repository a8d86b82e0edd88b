import assert from 'node:assert/strict'
import { mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, test } from 'node:test'
import type { WorkerSpec } from '../../../src/ports/driver.ts'
import { isRefusal, nextExit } from '../../contract/driver.ts'
import { type Machine, openMachine } from '../../contract/driver-machine.ts'
import { patient } from '../../support/patience.ts'

let machine: Machine
let app: string
beforeEach(async () => {
  machine = await openMachine()
  app = join(machine.root, 'app')
})
afterEach(() => machine.close())

const IN_IMAGE = { RUNYARD_WORKING_FOLDER: 'image' }

/** Starts a worker that stays up, and reports its folder. */
async function folderOf(changes: Partial<WorkerSpec> = {}): Promise<string> {
  const spec = machine.spec('', changes)
  await machine.driver().start(spec)
  return (await machine.life(spec.workerId)).report.folder
}

/** Runs a script of the shell as a worker to its end. What it printed, and the folder that it leaves. */
async function run(script: string, changes: Partial<WorkerSpec> = {}) {
  const args = JSON.stringify({ entrypoint: ['sh', '-ec'], cmd: [script] })
  const spec = machine.spec('', { args, ...changes })
  const driver = machine.driver()
  await driver.start(spec)
  const { code } = await nextExit(machine.notifier, driver, spec.workerId)
  const lines = (await machine.logs.tail(spec.workerId, 50)).map(({ line }) => line)
  assert.equal(code, 0, lines.join('\n'))
  return {
    lines,
    folder: join(machine.options.workerDir, spec.workerId),
    release: () => driver.release(spec.workerId),
  }
}

describe('the folder in which a process worker starts', { timeout: patient(120_000) }, () => {
  test('is its own: two workers of one image share nothing that they write there', async () => {
    const [first, second] = [await folderOf(), await folderOf()]
    assert.notEqual(first, second)
    for (const folder of [first, second]) assert.equal((await stat(folder)).mode & 0o777, 0o700)
    const before = await readdir(app)
    const script = '! test -e state; echo mine > state; mkdir outputs; cat state'
    assert.deepEqual((await run(script)).lines, ['mine'])
    assert.deepEqual((await run(script)).lines, ['mine'])
    assert.deepEqual(await readdir(app), before)
  })

  test('has the files and folders of the image, so that relative paths lead to them', async () => {
    await mkdir(join(app, 'static', 'deep'), { recursive: true })
    await writeFile(join(app, 'static', 'deep', 'page'), 'page')
    await writeFile(join(app, '.hidden'), 'hidden')
    await writeFile(join(app, 'run.sh'), '#!/bin/sh\necho "ran beside $(cat .hidden)"\n', { mode: 0o755 })
    const { lines } = await run('cat static/deep/page; echo; ./run.sh; cd static; cat ../.hidden')
    assert.deepEqual(lines, ['page', 'ran beside hidden', 'hidden'])
  })

  test('lets a handler import and read what is beside it', async () => {
    await mkdir(join(machine.root, 'node'))
    const handler = `
      import { readFileSync } from 'node:fs'
      import { word } from './beside.mjs'
      console.log(word, readFileSync('data', 'utf8'), readFileSync(new URL('data', import.meta.url), 'utf8'))`
    await writeFile(join(machine.root, 'node', 'handler.mjs'), handler)
    await writeFile(join(machine.root, 'node', 'beside.mjs'), "export const word = 'beside'")
    await writeFile(join(machine.root, 'node', 'data'), 'data')
    const words = [process.execPath, 'handler.mjs']
    for (const args of ['', JSON.stringify({ cmd: words })]) {
      const { lines } = await run('', { image: 'dir:node', args })
      assert.deepEqual(lines, ['beside data data'], args)
    }
  })

  test("never has the list of jobs that RunPod's SDK left in the image, nor its lock", async () => {
    for (const name of ['.runpod_jobs.pkl', '.runpod_jobs.pkl.lock']) await writeFile(join(app, name), 'of others')
    await run('! test -e .runpod_jobs.pkl; ! test -e .runpod_jobs.pkl.lock; echo mine > .runpod_jobs.pkl')
    assert.equal(await readFile(join(app, '.runpod_jobs.pkl'), 'utf8'), 'of others')
  })

  test("keeps what RunPod's SDK writes into folders of its own, also where the image has such a folder", async () => {
    await mkdir(join(app, 'jobs', 'before'), { recursive: true })
    await writeFile(join(app, 'jobs', 'settings'), 'settings')
    const { lines } = await run('cat jobs/settings; echo; ls jobs; mkdir jobs/job-1; rm -rf jobs/settings')
    assert.deepEqual(lines, ['settings', 'before', 'settings'])
    assert.deepEqual(await readdir(join(app, 'jobs')), ['before', 'settings'])
  })

  test('goes with the worker, and nothing that its links lead to', async () => {
    const outside = join(machine.folder, 'outside')
    await mkdir(outside)
    await writeFile(join(outside, 'kept'), 'kept')
    await mkdir(join(app, 'folder'))
    await mkdir(join(app, 'job_files'))
    await writeFile(join(app, 'folder', 'kept'), 'kept')
    await writeFile(join(app, 'job_files', 'kept'), 'kept')
    await symlink(outside, join(app, 'link'))
    const done = await run(`ln -s "${outside}" mine; mkdir own; ln -s "${app}" own/up; echo new > own/file`)
    const before = await readdir(app)
    await stat(join(done.folder, 'work', 'own', 'up', 'folder', 'kept'))
    await done.release()
    await assert.rejects(stat(done.folder), { code: 'ENOENT' })
    assert.deepEqual(await readdir(app), before)
    for (const path of [join(outside, 'kept'), join(app, 'folder', 'kept'), join(app, 'job_files', 'kept')]) {
      assert.equal(await readFile(path, 'utf8'), 'kept')
    }
  })

  test('does not lead back to itself where the image holds the data of the server', async () => {
    const driver = machine.driver({ workerDir: join(app, '.runyard', 'workers') })
    const spec = machine.spec('')
    await driver.start(spec)
    const { folder } = (await machine.life(spec.workerId)).report
    assert.deepEqual(await readdir(folder), ['worker.mjs'])
  })

  test('is the folder of the image where the endpoint says so', async () => {
    await writeFile(join(app, '.runpod_jobs.pkl'), 'of a worker of before')
    assert.equal(await folderOf({ env: IN_IMAGE }), app)
    await assert.rejects(stat(join(app, '.runpod_jobs.pkl')), { code: 'ENOENT' })
    assert.notEqual(await folderOf({ env: { RUNYARD_WORKING_FOLDER: 'private' } }), app)
    await assert.rejects(
      folderOf({ env: { RUNYARD_WORKING_FOLDER: 'shared' } }),
      thrown => isRefusal(thrown) && thrown.message === 'the variable RUNYARD_WORKING_FOLDER must be private or image',
    )
  })

  test('is the folder of the image where that has too many entries to link, and the output of the worker says so', async () => {
    const names = Array.from({ length: 10_000 }, (_, index) => join(app, `file-${index}`))
    for (let at = 0; at < names.length; at += 500) {
      await Promise.all(names.slice(at, at + 500).map(name => writeFile(name, '')))
    }
    const { lines } = await run('pwd')
    assert.match(lines[0] ?? '', /^runyard: this worker starts in .*\/app itself, .* more than 10000 entries$/)
    assert.equal(lines[1], app)
  })
})
