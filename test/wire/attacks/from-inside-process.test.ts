/** What a worker that is a process in a cage and means harm can reach: its own image and folders, and nothing of the server or of others. */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { before, describe, test } from 'node:test'
import { findLimits } from '../../../src/drivers/cage/limits.ts'
import { tryCage } from '../../../src/drivers/cage/trial.ts'
import { temporaryFolder } from '../support/cleanup.ts'
import { ask, healthOf, makeEndpoint, runJob } from '../support/client.ts'
import { root } from '../support/server.ts'
import { type ProbedServer, startProbedServer } from './probed-server.ts'

const trial = tryCage()
const isRequired = process.env.RUNYARD_NO_SKIP === '1'
const skip = 'problem' in trial && !isRequired ? trial.problem : false
const limits = findLimits()

/** Runs the shell command of its job and tells what became of it. */
const HANDLER = `
import { spawnSync } from 'node:child_process'
import { start } from '@runyard/worker'
start({ handler({ input }) {
  const { stdout, stderr, status, signal } = spawnSync('/bin/sh', ['-c', input.command], { encoding: 'utf8', timeout: 60000 })
  return { out: stdout.slice(-20000), err: stderr.slice(-2000), status, signal }
} })
`

describe('from inside of a caged process', { skip, timeout: 180_000 }, () => {
  let server: ProbedServer
  let endpoint: string
  let other: string

  const shell = async (command: string, at = endpoint) => {
    const done = await runJob(server, at, { command })
    assert.equal(done.status, 'COMPLETED', JSON.stringify(done))
    return done.output as { out: string; err: string; status: number | null; signal: string | null }
  }

  before(async () => {
    const images = temporaryFolder()
    for (const name of ['evil', 'other']) {
      mkdirSync(join(images, name, 'node_modules', '@runyard'), { recursive: true })
      writeFileSync(
        join(images, name, 'handler.mjs'),
        HANDLER.replace('@runyard/worker', `file://${root}/packages/worker/index.js`),
      )
    }
    const sandbox = ['--worker-sandbox', 'required', '--worker-network', 'server']
    const args = ['--process-root', images, ...sandbox, '--worker-readable', `${root}/packages`]
    server = await startProbedServer({ args })
    const settings = { workersMax: 1, idleTimeout: 3600, instanceIds: ['cpu3c-2-4'] }
    endpoint = await makeEndpoint(server, { folder: join(images, 'evil'), settings })
    other = await makeEndpoint(server, { folder: join(images, 'other'), settings })
    await Promise.all([shell('true'), shell('true', other)])
    server.forgetHolds()
  })

  test('the files of the server cannot be read: API key, encryption key, database, logs, relay', async () => {
    const names = ['api-key', 'encryption-key', 'runyard.sqlite', 'logs', 'relay', 'volumes', 'store']
    for (const name of names.slice(0, 3)) assert.ok(existsSync(join(server.dataDir, name)), name)
    const { out } = await shell(names.map(name => `ls '${join(server.dataDir, name)}' && echo SEEN`).join('; '))
    assert.doesNotMatch(out, /SEEN/)
    const key = readFileSync(join(server.dataDir, 'api-key'), 'utf8').trim()
    const found = await shell(
      `grep -rsl '${key.slice(0, 12)}' /tmp /etc /var '${server.dataDir}' | grep -v '^/proc'; cat /etc/shadow`,
    )
    assert.equal(found.out, '')
  })

  test('other workers are not there: neither processes, nor their environment, nor their folders', async () => {
    const mine = await shell(
      'echo $RUNPOD_POD_ID; cat /proc/[0-9]*/environ | tr "\\0" "\\n" | grep ^RUNPOD_POD_ID= | sort -u',
    )
    const [own, ...seen] = mine.out.trim().split('\n')
    assert.deepEqual(seen, [`RUNPOD_POD_ID=${own}`])
    const folders = await shell(`ls '${server.dataDir}/workers'`)
    assert.deepEqual(folders.out.trim().split('\n'), [own])
    assert.equal((await shell(`kill -0 ${server.pid} && echo SEEN`)).out, '')
  })

  test('sockets of the container engine and of the system are not there', async () => {
    const { out } = await shell(
      'find / -xdev -type s 2>/dev/null; ls -d /run/docker* /run/podman* /run/dbus /run/systemd 2>/dev/null',
    )
    assert.equal(out, '')
  })

  test('the system cannot be changed, and what it changes in its image is gone with it', async () => {
    const found = await shell(
      'for d in /usr /etc /; do echo x > $d/planted && echo WRITTEN; done; readlink -f handler.mjs',
    )
    assert.doesNotMatch(found.out, /WRITTEN/)
    const image = dirname(found.out.trim())
    const before = readFileSync(join(image, 'handler.mjs'), 'utf8')
    const changed = await shell(
      `cd '${image}' && echo x > planted && echo y > handler.mjs && mkdir -p cache && echo z > cache/new && cat planted handler.mjs cache/new`,
    )
    assert.equal(changed.out, 'x\ny\nz\n', changed.err)
    assert.equal(readFileSync(join(image, 'handler.mjs'), 'utf8'), before)
    assert.deepEqual([existsSync(join(image, 'planted')), existsSync(join(image, 'cache'))], [false, false])
    const own = await shell('echo x > mine && cat mine && echo y > $HOME/mine && echo z > /tmp/mine && echo DONE')
    assert.match(own.out, /DONE/)
  })

  test('there are no capabilities, no way to more of them, and no mount', async () => {
    const { out } = await shell(
      'grep -E "^(CapEff|CapPrm|CapBnd|NoNewPrivs)" /proc/self/status; mount -t tmpfs x /tmp && echo MOUNTED; unshare -U true && echo NAMESPACE; test -w /proc/sys/kernel/core_pattern && echo WRITTEN; test -w /proc/sysrq-trigger && echo WRITTEN; find /sys /proc/sys -xdev -writable -type f 2>/dev/null | head -3',
    )
    assert.deepEqual(
      out.match(/\t\S+/g)?.map(text => text.trim()),
      ['0000000000000000', '0000000000000000', '0000000000000000', '1'],
    )
    assert.doesNotMatch(out, /MOUNTED|NAMESPACE|WRITTEN|sys\//)
  })

  test('a variable of a template cannot act outside of the cage', async () => {
    const { out } = await shell('cat /proc/1/environ | tr "\\0" "\\n" | cut -d= -f1 | sort')
    assert.doesNotMatch(out, /LD_PRELOAD|RUNPOD_AI_API_KEY/)
  })

  test('a fork bomb ends at its limit, and the server and other workers are not affected', {
    skip: limits.processes === null && 'this machine lets the server make no control group for processes',
  }, async () => {
    const bomb = 'i=0; while [ $i -lt 4500 ]; do sleep 1 & i=$((i+1)); done 2>/dev/null; echo STARTED $i'
    const started = runJob(server, endpoint, { command: bomb })
    await shell('true', other)
    const done = await started
    assert.ok(['COMPLETED', 'FAILED'].includes(done.status), done.status)
    assert.equal((await healthOf(server, other)).workers.ready >= 0, true)
  })

  test('a program that takes all memory ends alone, and the server and other workers are not affected', {
    skip: limits.memory === null && 'this machine lets the server make no control group for memory',
  }, async () => {
    const { out } = await shell(`node -e 'const a = []; for (;;) a.push(Buffer.alloc(64 << 20, 1))'; echo $?`)
    assert.equal(out.trim(), '137')
    await shell('true', other)
  })

  test('no process outside is traced, and no file system gives the rights of the owner of a program', async () => {
    const { out } = await shell(
      `cat /proc/${server.pid}/mem && echo SEEN; grep NoNewPrivs /proc/self/status; cut -d" " -f2,4 /proc/self/mounts`,
    )
    assert.doesNotMatch(out, /SEEN/)
    assert.match(out, /NoNewPrivs:\t1/)
    for (const mount of out.split('\n').filter(line => line.startsWith('/'))) assert.match(mount, /nosuid/)
  })

  test('no core is dumped, whose place the settings of the machine choose', async () => {
    assert.equal((await shell('ulimit -c')).out.trim(), '0')
  })

  test('its view says that it is in a cage, and what it is held to', async () => {
    const [{ id }] = (await ask(server, `/v2/serverless/${endpoint}/workers`)).json.workers
    const { json } = await ask(server, `/v2/serverless/${endpoint}/workers/${id}`)
    assert.equal(json.isolation, 'cage')
    assert.equal(json.limits.includes('processes'), limits.processes !== null)
    assert.ok(json.limits.includes('disk'))
    assert.ok(json.limits.includes('network'))
  })

  test('nothing of it held the server', () => server.assertNeverHeld())
})
