/** A release, made in a copy of the repository. */
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { changedFiles, compareVersions, isVersion, releasedChangelog } from '../../scripts/release/versions.ts'
import { findChangelogMistakes } from '../tidy/docs.ts'
import { files, read, root } from '../tidy/files.ts'
import { findStaleLock } from '../tidy/hygiene.ts'

describe('a release in a copy of the repository', () => {
  let copy: string
  let made: string
  before(() => {
    const scratch = mkdtempSync(join(tmpdir(), 'runyard-release-'))
    copy = join(scratch, 'copy')
    made = join(scratch, 'made')
    for (const path of files) {
      mkdirSync(dirname(join(copy, path)), { recursive: true })
      cpSync(join(root, path), join(copy, path))
    }
    symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
    git('init', '--quiet')
    git('config', 'user.name', 'Test')
    git('config', 'user.email', 'test@example.com')
    git('config', 'commit.gpgSign', 'false')
    git('config', 'tag.gpgSign', 'false')
    // A link is no folder, which is what .gitignore names.
    writeFileSync(join(copy, '.git/info/exclude'), 'node_modules\n')
    git('add', '--all')
    git('commit', '--quiet', '--message', 'before')
  })
  after(() => rmSync(dirname(copy), { recursive: true, force: true }))

  const git = (...words: string[]) => execFileSync('git', words, { cwd: copy, encoding: 'utf8' }).trim()
  const release = (...words: string[]) => {
    const script = join(copy, 'scripts/release.ts')
    const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...words], {
      cwd: copy,
      encoding: 'utf8',
    })
    return { status, printed: `${stdout}${stderr}` }
  }
  const released = (path: string) => readFileSync(join(copy, path), 'utf8')
  const options = ['--checked', '--no-benchmarks', '--no-signatures', '--date', '2030-01-31']

  test('what cannot be released is refused, and nothing changes', () => {
    const refused = (version: string) => release(version, ...options, '--to', made).printed
    assert.match(refused('next'), /next is not a version/)
    assert.match(refused('0.0.1'), /0\.0\.1 is older than/)
    writeFileSync(join(copy, 'stray.txt'), '')
    assert.match(refused('7.0.0'), /not committed/)
    rmSync(join(copy, 'stray.txt'))
    git('tag', 'v7.0.0')
    assert.match(refused('7.0.0'), /the tag v7\.0\.0 already exists/)
    git('tag', '--delete', 'v7.0.0')
    assert.equal(git('log', '--format=%s'), 'before')
  })

  test('it makes the version, the changelog, the tag and the packages, and publishes nothing', () => {
    const { status, printed } = release('7.8.9', ...options, '--to', made)
    assert.equal(status, 0, printed)
    assert.match(printed, /Nothing is published/)
    assert.deepEqual(git('log', '--format=%s').split('\n'), ['release: 7.8.9', 'before'])
    assert.equal(git('rev-parse', 'v7.8.9^{commit}'), git('rev-parse', 'HEAD'))
    assert.equal(git('cat-file', '-t', 'v7.8.9'), 'tag')
    assert.equal(git('status', '--porcelain'), '')
    const names = [
      'SHA256SUMS',
      'notes.md',
      'runyard-7.8.9.tgz',
      'runyard-worker-7.8.9.tgz',
      'runyard.cdx.json',
      'schema.graphql',
    ]
    assert.deepEqual(readdirSync(made).sort(), names)
    execFileSync('sha256sum', ['--check', '--quiet', 'SHA256SUMS'], { cwd: made })
    const bill = JSON.parse(readFileSync(join(made, 'runyard.cdx.json'), 'utf8'))
    assert.equal(bill.metadata.component.version, '7.8.9')
    assert.deepEqual(findChangelogMistakes(released('CHANGELOG.md')), [])
    assert.ok(released('CHANGELOG.md').includes('## [Unreleased]\n\n## [7.8.9] - 2030-01-31\n\n### '))
    assert.deepEqual(findStaleLock(released('package.json'), released('package-lock.json')), [])
    assert.match(released('packages/worker/src/version.ts'), /version = '7\.8\.9'/)
    assert.match(released('deploy/helm/runyard/Chart.yaml'), /^appVersion: 7\.8\.9$/m)
  })

  test('the same sources make the same packages, to the byte', () => {
    const again = join(dirname(copy), 'again')
    mkdirSync(again)
    for (const folder of [copy, join(copy, 'packages/worker')])
      execFileSync('npm', ['pack', '--silent', '--pack-destination', again], { cwd: folder, stdio: 'ignore' })
    assert.deepEqual(readdirSync(again).sort(), ['runyard-7.8.9.tgz', 'runyard-worker-7.8.9.tgz'])
    for (const name of readdirSync(again)) {
      const isSame = readFileSync(join(again, name)).equals(readFileSync(join(made, name)))
      assert.ok(isSame, name)
    }
  })

  test('a release that fails halfway leaves everything as it was', () => {
    // The changelog has nothing that is unreleased now, and a builder is missing.
    assert.match(release('7.9.0', ...options, '--to', join(made, 'a')).printed, /has no unreleased changes/)
    writeFileSync(
      join(copy, 'CHANGELOG.md'),
      released('CHANGELOG.md').replace('## [Unreleased]\n', '## [Unreleased]\n\n### Added\n\n- One thing.\n'),
    )
    git('commit', '--quiet', '--all', '--message', 'one thing')
    const { status } = release('7.9.0', ...options, '--to', join(made, 'b'), '--image', '--builder', 'false')
    assert.equal(status, 1)
    assert.equal(git('status', '--porcelain'), '')
    assert.equal(git('tag', '--list'), 'v7.8.9')
    assert.match(released('package.json'), /"version": "7\.8\.9"/)
  })
})

test('the version that is there already is in all places that a release changes, in the form that it writes', () => {
  const { version } = JSON.parse(read('package.json')) as { version: string }
  const { files: changed } = changedFiles(read, version, '2030-01-31')
  const others = Object.keys(changed).filter(path => path !== 'CHANGELOG.md')
  for (const path of others) assert.equal(changed[path], read(path), path)
})

test('versions are ordered', () => {
  const ordered = ['0.9.0', '0.10.0-rc.2', '0.10.0-rc.10', '0.10.0', '1.0.0']
  assert.deepEqual([...ordered].reverse().sort(compareVersions), ordered)
  assert.deepEqual(['1.2', 'v1.2.3', '1.2.3-', '1.2.3'].filter(isVersion), ['1.2.3'])
})

test('older sections of the changelog stay', () => {
  const before = '# C\n\n## [Unreleased]\n\n### Fixed\n\n- b\n\n## [1.0.0] - 2026-01-31\n\n### Added\n\n- a\n'
  const { text, notes } = releasedChangelog(before, '1.1.0', '2026-02-01')
  assert.equal(notes, '### Fixed\n\n- b\n')
  assert.equal(text, before.replace('## [Unreleased]\n', '## [Unreleased]\n\n## [1.1.0] - 2026-02-01\n'))
})
