/** The units: as hardened as they claim, with settings that exist, and a port that the server takes over. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { readConfig, strayVariables } from '../../src/config/config.ts'
import { noSystemd, systemdAnalyze, unitSettings } from '../support/systemd.ts'

const KIT = fileURLToPath(new URL('../../deploy/systemd', import.meta.url))
const service = readFileSync(join(KIT, 'runyard.service'), 'utf8')
const socket = readFileSync(join(KIT, 'runyard.socket'), 'utf8')
const cages = readFileSync(join(KIT, 'cages.conf'), 'utf8')

function folderFor(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'runyard-units-'))
  t.after(() => rmSync(folder, { recursive: true }))
  return folder
}

/** The exposure of the service, from 0 to 10, with these files beside it. */
function exposure(t: TestContext, dropIns: Readonly<Record<string, string>> = {}): number {
  const folder = folderFor(t)
  cpSync(KIT, folder, { recursive: true })
  mkdirSync(join(folder, 'runyard.service.d'))
  for (const [name, text] of Object.entries(dropIns)) writeFileSync(join(folder, 'runyard.service.d', name), text)
  const unit = join(folder, 'runyard.service')
  const { stdout, stderr } = systemdAnalyze(['security', '--offline=true', '--no-pager', unit])
  const [, level] = /exposure level for runyard\.service: ([\d.]+)/.exec(stdout) ?? assert.fail(stdout + stderr)
  return Number(level)
}

describe('what systemd says', { skip: noSystemd }, () => {
  test('the exposure of the service is at most 2.5, and that with cages as the guide says', t => {
    assert.ok(exposure(t) <= 2.5)
    assert.ok(exposure(t, { 'cages.conf': cages }) <= 3.5)
  })

  test('both units are valid', t => {
    const folder = folderFor(t)
    // The program is not installed here, and older versions ignore one setting with a warning.
    const installed = service.replace(/^ExecStart=.*$/m, 'ExecStart=/bin/true').replace(/^DelegateSubgroup=.*\n/m, '')
    writeFileSync(join(folder, 'runyard.service'), installed)
    writeFileSync(join(folder, 'runyard.socket'), socket)
    const units = ['runyard.service', 'runyard.socket'].map(name => join(folder, name))
    const { status, stdout, stderr } = systemdAnalyze(['verify', '--man=no', ...units])
    assert.deepEqual([status, stdout + stderr], [0, ''])
  })
})

test('the settings of the units exist, and the socket is where the server looks for it', () => {
  const words = [service, cages].flatMap(text => unitSettings(text).get('Environment') ?? [])
  const env = Object.fromEntries(words.map(word => word.split('=', 2) as [string, string]))
  assert.deepEqual(strayVariables(env), [])
  const reading = readConfig({ options: {}, env, absolute: path => path, read: () => '' })
  assert.ok('config' in reading, JSON.stringify(reading))
  const { host, port, dataDir } = reading.config
  assert.deepEqual(unitSettings(socket).get('ListenStream'), [`${host}:${port}`])
  assert.equal(dataDir, `/var/lib/${unitSettings(service).get('StateDirectory')?.[0]}`)
})

describe('the group of the server', () => {
  /** Starts a command in the group `own` of a made-up tree. */
  function start(root: string, own: string) {
    const words = [`RUNYARD_CGROUP_ROOT=${root}`, `RUNYARD_CGROUP_OWN=${own}`, join(KIT, 'runyard-in-group')]
    return spawnSync('env', [...words, 'sh', '-c', 'echo $$ $RUNYARD_CGROUP_ROOT'], { encoding: 'utf8' })
  }
  const group = (root: string, path: string) => {
    mkdirSync(join(root, path), { recursive: true })
    for (const file of ['cgroup.procs', 'cgroup.subtree_control']) writeFileSync(join(root, path, file), '')
  }

  test('below the one that systemd has delegated the server is in a group of its own', t => {
    const root = folderFor(t)
    group(root, 'system.slice/runyard.service')
    const { stdout } = start(root, '/system.slice/runyard.service')
    const read = (file: string) => readFileSync(join(root, 'system.slice/runyard.service', file), 'utf8').trim()
    assert.equal(read('server/cgroup.procs'), stdout.trim())
    assert.equal(read('cgroup.subtree_control'), '')
  })

  test('where systemd has made that, controllers for workers are turned on above it', t => {
    const root = folderFor(t)
    group(root, 'system.slice/runyard.service')
    group(root, 'system.slice/runyard.service/server')
    assert.match(start(root, '/system.slice/runyard.service/server').stdout, /^\d+\n$/)
    // A real one adds; this file has the last of them.
    const on = readFileSync(join(root, 'system.slice/runyard.service/cgroup.subtree_control'), 'utf8')
    assert.equal(on, '+cpu\n')
  })

  test('without a group that it may change, the command is started all the same', t => {
    assert.match(start(folderFor(t), '/nowhere').stdout, /^\d+\n$/)
  })
})
