/** The installer says what it would do, and does that alone. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'

const INSTALLER = fileURLToPath(new URL('../../deploy/install.sh', import.meta.url))

function setUp(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'runyard-install-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const [program, root] = [join(folder, 'program'), join(folder, 'root')]
  mkdirSync(join(program, 'bin'), { recursive: true })
  mkdirSync(root)
  writeFileSync(join(program, 'bin/runyard'), 'first')
  const install = (...options: string[]) => {
    const words = ['--root', root, '--program', program, ...options]
    const { status, stdout, stderr } = spawnSync(INSTALLER, words, { encoding: 'utf8' })
    return { status, stderr, steps: stdout.replaceAll(root, '').split('\n').slice(1, -1) }
  }
  return { root, program, install }
}

test('without --yes nothing is changed, and with it what was said is done', t => {
  const { root, install } = setUp(t)
  const said = install('--cages')
  assert.equal(said.status, 0, said.stderr)
  assert.deepEqual(readdirSync(root), [])
  assert.deepEqual(said.steps, [
    '  put the program, with its Node, into /opt/runyard',
    '  put runyard.service and runyard.socket into /etc/systemd/system',
    '  let workers run in cages: /etc/systemd/system/runyard.service.d/cages.conf',
    '  make a file for settings: /etc/runyard/environment',
  ])
  const done = install('--cages', '--yes')
  assert.equal(done.status, 0, done.stderr)
  assert.deepEqual(done.steps, said.steps)
  const modes = [
    ['opt/runyard/bin/runyard-in-group', 0o755],
    ['etc/systemd/system/runyard.service', 0o644],
    ['etc/systemd/system/runyard.socket', 0o644],
    ['etc/systemd/system/runyard.service.d/cages.conf', 0o644],
    ['etc/runyard/environment', 0o600],
  ] as const
  for (const [path, mode] of modes) assert.equal(statSync(join(root, path)).mode & 0o777, mode, path)
  assert.equal(readFileSync(join(root, 'opt/runyard/bin/runyard'), 'utf8'), 'first')
})

test('a second time the program is replaced, the one before is kept, and settings stay', t => {
  const { root, program, install } = setUp(t)
  install('--yes')
  writeFileSync(join(root, 'etc/runyard/environment'), 'RUNYARD_PUBLIC_URL=https://example.com\n')
  writeFileSync(join(program, 'bin/runyard'), 'second')
  const { status, steps } = install('--yes')
  assert.equal(status, 0)
  assert.equal(steps[0], '  replace the program in /opt/runyard; the one before stays in /opt/runyard.old')
  assert.equal(steps.length, 2)
  assert.equal(readFileSync(join(root, 'opt/runyard/bin/runyard'), 'utf8'), 'second')
  assert.equal(readFileSync(join(root, 'opt/runyard.old/bin/runyard'), 'utf8'), 'first')
  assert.match(readFileSync(join(root, 'etc/runyard/environment'), 'utf8'), /example\.com/)
})

test('a folder without the program is refused before anything is changed', t => {
  const { root, program, install } = setUp(t)
  rmSync(join(program, 'bin/runyard'))
  const { status, stderr } = install('--yes')
  assert.equal(status, 66)
  assert.match(stderr, /has no bin\/runyard/)
  assert.deepEqual(readdirSync(root), [])
})

test('an option that it does not know changes nothing', t => {
  const { root, install } = setUp(t)
  const { status, stderr } = install('--yse')
  assert.equal(status, 64)
  assert.match(stderr, /what is --yse/)
  assert.ok(!existsSync(join(root, 'opt')))
})
