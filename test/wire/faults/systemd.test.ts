/** The service that the installer makes, under a systemd that runs. */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { freePort } from '../../support/free-ports.ts'
import { patient } from '../../support/patience.ts'
import { callsWithoutEnd } from '../support/calls.ts'
import { ask } from '../support/client.ts'
import { bootSystemd, noSystemdMachine, REPOSITORY, type SystemdMachine } from '../support/systemd-machine.ts'
import { until } from '../support/until.ts'

const INSTALLER = `${REPOSITORY}/deploy/install.sh`
const NAME = 'runyard.service'
const GROUP = `/sys/fs/cgroup/system.slice/${NAME}`
const HELLO = { body: { input: { name: 'Ada' } } }
const START_MS = 60_000

describe('the service under systemd', { skip: noSystemdMachine, timeout: patient(240_000) }, () => {
  let machine: SystemdMachine
  let server: { url: string; apiKey: string }
  let port: number
  before(async () => {
    machine = await bootSystemd()
    port = await freePort()
  })

  const systemctl = (...words: string[]) => machine.run('systemctl', ...words)
  const property = (name: string) => systemctl('show', '--property', name, '--value', NAME)
  const statusOfMain = async () => machine.read(`/proc/${await property('MainPID')}/status`)
  /** As the guide has it. */
  const runyard = (...words: string[]) =>
    machine.run('env', 'RUNYARD_DATA_DIR=/var/lib/runyard', '/opt/runyard/bin/runyard', ...words)
  const hello = () => ask(server, '/v2/hellonode/runsync?wait=60000', HELLO)
  /** Waits for a server other than the one before, which answers. */
  const next = async (before: string) => {
    await until('the next process', async () => !['0', before].includes(await property('MainPID')), START_MS)
    // The connection that the client has kept is one to the server before.
    const isUp = () =>
      ask(server, '/healthz').then(
        ({ status }) => status === 200,
        () => false,
      )
    await until('its answer', isUp, START_MS)
  }

  test('the installer makes it, on another port as the guide says, and it runs jobs', async () => {
    const installed = await machine.run(INSTALLER, '--yes', '--no-start')
    assert.match(installed, /make the user runyard/)
    machine.write(
      '/etc/systemd/system/runyard.socket.d/override.conf',
      `[Socket]\nListenStream=\nListenStream=127.0.0.1:${port}\n`,
    )
    machine.write('/etc/runyard/environment', `RUNYARD_PORT=${port}\nRUNYARD_SAMPLE=true\n`)
    await systemctl('daemon-reload')
    await systemctl('enable', '--now', 'runyard.socket', NAME)
    const url = `http://127.0.0.1:${port}`
    assert.equal((await ask({ url, apiKey: 'none' }, '/readyz')).status, 200)
    server = { url, apiKey: machine.read('/var/lib/runyard/api-key').trim() }
    const job = await hello()
    assert.equal(job.json?.output?.message, 'Hello, Ada!', job.text)
    assert.match(await machine.run('journalctl', '--unit', 'runyard'), /Runyard is up at/)
  })

  test('it runs as a user of its own without any right, behind a filter of system calls, in the group that is delegated', async () => {
    const status = await statusOfMain()
    const user = await machine.run('id', '--user', 'runyard')
    assert.match(status, new RegExp(`^Uid:\\t${user}\\t${user}\\t${user}\\t${user}$`, 'm'))
    assert.match(status, /^CapEff:\t0+$/m)
    assert.match(status, /^CapBnd:\t0+$/m)
    assert.match(status, /^NoNewPrivs:\t1$/m)
    assert.match(status, /^Seccomp:\t2$/m)
    const processes = await machine.run('cat', `${GROUP}/server/cgroup.procs`)
    assert.ok(processes.split('\n').includes(await property('MainPID')), processes)
    assert.equal(await machine.run('stat', '--format', '%a %U', '/var/lib/runyard'), '700 runyard')
  })

  test('three restarts under load refuse and cut off no call', async () => {
    const calls = callsWithoutEnd(port)
    for (let round = 1; round <= 3; round += 1) {
      const before = await property('MainPID')
      await systemctl('restart', NAME)
      await next(before)
    }
    const answers = await calls.end()
    assert.ok(answers.get('200')! > 20, JSON.stringify([...answers]))
    // 503 is the answer of a server that stops.
    assert.deepEqual(
      [...answers].filter(([answer]) => answer !== '200' && answer !== '503'),
      [],
    )
  })

  test('a kill of the server leaves its workers to the next one, which systemd starts', async () => {
    const first = await hello()
    const before = await property('MainPID')
    await systemctl('kill', '--kill-who=main', '--signal=KILL', NAME)
    await next(before)
    const second = await hello()
    assert.equal(second.json?.output?.message, 'Hello, Ada!', second.text)
    assert.equal(second.json.workerId, first.json.workerId)
  })

  test('an idle worker is frozen and thawed by the next job', async () => {
    await runyard('endpoints', 'update', 'hellonode', '--flashboot', 'FLASHBOOT', '--idle-timeout', '1')
    assert.equal((await hello()).status, 200)
    const frozen = await until('a frozen worker', async () => {
      const lines = (await runyard('workers', 'list', '--json')).split('\n').map(line => JSON.parse(line))
      return lines.find(({ phase }) => phase === 'frozen')
    })
    const job = await hello()
    assert.equal(job.json.workerId, frozen.id, job.text)
  })

  test('an upgrade keeps settings, data and the program before', async () => {
    const before = await property('MainPID')
    await machine.run('touch', '/opt/runyard/first')
    await machine.run(INSTALLER, '--yes', '--program', '/opt/runyard')
    await next(before)
    assert.equal((await hello()).json.output.message, 'Hello, Ada!')
    await machine.run('test', '-e', '/opt/runyard.old/first')
  })

  test('with cages workers are in one each', async () => {
    const before = await property('MainPID')
    await machine.run(INSTALLER, '--yes', '--program', '/opt/runyard', '--cages')
    await next(before)
    const job = await hello()
    assert.equal(job.json?.output?.message, 'Hello, Ada!', job.text)
    const worker = await machine.run('pgrep', '--full', '--newest', 'handler.mjs')
    const spaceOf = (pid: string) => machine.run('readlink', `/proc/${pid}/ns/pid`)
    assert.notEqual(await spaceOf(worker), await spaceOf(await property('MainPID')))
  })

  test('settings that are wrong are said, and systemd does not try them again and again', async () => {
    const settings = machine.read('/etc/runyard/environment')
    machine.write('/etc/runyard/environment', `${settings}RUNYARD_DRAIN_TIMEOUT=soon\n`)
    await machine.attempt('systemctl', 'restart', NAME)
    await until('the end', async () => (await property('ActiveState')) === 'failed', START_MS)
    assert.equal(await property('ExecMainStatus'), '64')
    assert.match(
      await machine.run('journalctl', '--unit', 'runyard', '--lines', '20'),
      /RUNYARD_DRAIN_TIMEOUT must be a whole number/,
    )
    machine.write('/etc/runyard/environment', settings)
    await systemctl('restart', NAME)
    assert.equal((await ask(server, '/readyz')).status, 200)
  })

  test('what the guide says removes all of it', async () => {
    const guide = machine.read(`${REPOSITORY}/docs/guides/install.md`)
    const [, commands] = /\*\*To remove it\*\*\n\n```bash\n([\s\S]*?)```/.exec(guide)!
    await machine.run('sh', '-ec', commands!.replaceAll('sudo ', ''))
    const left = ['/opt/runyard', '/opt/runyard.old', '/etc/runyard', '/var/lib/runyard']
    for (const path of left) assert.notEqual((await machine.attempt('test', '-e', path)).status, 0, path)
    assert.notEqual((await machine.attempt('id', 'runyard')).status, 0)
    assert.equal((await machine.attempt('systemctl', 'list-unit-files', '--no-legend', 'runyard*')).stdout, '')
  })
})
