/** Reach of a malicious worker in a container: its own image and memory, and nothing of the server or of others. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { engineUrl, noDocker, onPodman } from '../../support/docker.ts'
import { patient } from '../../support/patience.ts'
import { ask, healthOf, runJob } from '../support/client.ts'
import { containerEndpoint } from '../support/containers.ts'
import { type ProbedServer, startProbedServer } from './probed-server.ts'

/** Runs the shell command of its job and reports the result. */
const HANDLER = `
import { spawnSync } from 'node:child_process'
import { start } from '@runyard/worker'
start({ handler({ input }) {
  const { stdout, stderr, status, signal } = spawnSync('/bin/sh', ['-c', input.command], { encoding: 'utf8', timeout: 60000 })
  return { out: stdout.slice(-20000), err: stderr.slice(-2000), status, signal }
} })
`

/** Starts processes until it cannot, and reports their number. */
const FORK_BOMB = `python3 -c '
import os, signal
pids = []
try:
    while len(pids) < 20000:
        pid = os.fork()
        if pid == 0: signal.pause()
        pids.append(pid)
except OSError: pass
for pid in pids: os.kill(pid, signal.SIGKILL)
print(len(pids))
'`

/** Takes more memory than the container has, in a process of its own. */
const MEMORY_BOMB = `python3 -c 'a = []
while True: a.append(bytearray(64 << 20))'; echo $?`

describe('from inside of a container', { skip: noDocker, timeout: patient(280_000) }, () => {
  let server: ProbedServer
  let endpoint: string
  let other: string

  const shell = async (command: string, at = endpoint) => {
    const done = await runJob(server, at, { command })
    assert.equal(done.status, 'COMPLETED', JSON.stringify(done))
    return done.output as { out: string; err: string; status: number | null; signal: string | null }
  }

  before(async () => {
    server = await startProbedServer({ args: ['--docker', engineUrl] })
    const words = ['node', '--input-type=module', '-e', HANDLER]
    const settings = { workersMax: 1, idleTimeout: 3600, instanceIds: ['cpu3c-2-4'] }
    endpoint = await containerEndpoint(server, { words, settings })
    other = await containerEndpoint(server, { words, settings, env: { THEIR_SECRET: 'hush-of-the-other' } })
    await Promise.all([shell('true'), shell('true', other)])
    server.forgetHolds()
  })

  test('the files of the server and of the machine are not there: API key, encryption key, database, relay', async () => {
    writeFileSync(join(server.dataDir, 'planted'), 'x')
    const key = readFileSync(join(server.dataDir, 'api-key'), 'utf8').trim()
    const found = await shell(
      `ls -d '${server.dataDir}' && echo SEEN; grep -rsl '${key.slice(0, 12)}' /etc /home /root /run /srv /tmp /var; cat /etc/shadow | grep -v '[*!]'`,
    )
    assert.equal(found.out, '')
  })

  test('other workers are not there: neither processes, nor their environment, nor their jobs', async () => {
    const mine = await shell(
      'cat /proc/[0-9]*/environ | tr "\\0" "\\n" | sort -u; ls -d /proc/[0-9]* | wc -l; kill -0 4194303 && echo SENT',
    )
    assert.doesNotMatch(mine.out, /hush|SENT/)
    assert.equal(new Set(mine.out.match(/^RUNPOD_POD_ID=.*/gm)).size, 1)
    const inTheirs = await shell('echo $THEIR_SECRET', other)
    assert.equal(inTheirs.out.trim(), 'hush-of-the-other')
  })

  test('sockets of the container engine, of the relay and of the system are not there', async () => {
    const { out } = await shell(
      'find / -xdev -type s 2>/dev/null; ls /run/docker.sock /var/run/docker.sock 2>/dev/null',
    )
    assert.equal(out, '')
  })

  test('there is no way to more rights, to devices, to mounts or to settings of the kernel', async () => {
    const { out } = await shell(
      'grep -E "^(CapEff|NoNewPrivs)" /proc/self/status; mount -t tmpfs x /mnt && echo MOUNTED; unshare -Ur true && echo NAMESPACE; for f in /proc/sys/kernel/core_pattern /proc/sysrq-trigger; do (echo x >$f) 2>/dev/null && echo WRITTEN; done; mknod /tmp/disk b 8 0 && echo DEVICE; find /dev -type b',
    )
    const [effective = '', noNewPrivs] = out.match(/\t\S+/g)?.map(text => text.trim()) ?? []
    // Neither SYS_ADMIN, SYS_PTRACE, MKNOD, NET_RAW nor NET_ADMIN.
    assert.equal(Number.parseInt(effective, 16) & ((1 << 21) | (1 << 19) | (1 << 27) | (1 << 13) | (1 << 12)), 0)
    assert.equal(noNewPrivs, '1')
    assert.doesNotMatch(out, /MOUNTED|NAMESPACE|WRITTEN|DEVICE|\/dev/)
  })

  test('a program that takes all memory ends alone, and the server and other workers are not affected', async () => {
    const { out } = await shell(MEMORY_BOMB)
    assert.equal(out.trim(), '137')
    await shell('true', other)
  })

  test('a fork bomb ends at its limit, and the server and other workers are not affected', {
    skip: onPodman,
  }, async () => {
    const started = shell(FORK_BOMB)
    await shell('true', other)
    const count = Number((await started).out)
    assert.ok(count > 100 && count < 8_192, `${count} processes`)
    assert.equal((await healthOf(server, other)).workers.ready >= 0, true)
  })

  test('its view says that it is a container, and what it is held to', async () => {
    const [{ id }] = (await ask(server, `/v2/serverless/${endpoint}/workers`)).json.workers
    const { json } = await ask(server, `/v2/serverless/${endpoint}/workers/${id}`)
    assert.equal(json.isolation, 'container')
    for (const limit of ['memory', 'processes', 'cpu', 'disk', 'network']) assert.ok(json.limits.includes(limit), limit)
  })

  test('nothing of it held the server', () => server.assertNeverHeld())
})
