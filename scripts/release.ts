/**
 * Makes a release and publishes nothing: `./bin/node scripts/release.ts <version>`. It makes all files before it
 * commits, and prints the remaining steps for a person at the end.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { changedFiles, compareVersions, isVersion } from './release/versions.ts'
import { schemaText } from './schema.ts'

const HELP = `./bin/node scripts/release.ts <version> [options]

  --to <folder>        where the files go (default: release/<version>)
  --date <day>         day in the changelog (default: today, UTC)
  --image              also build the image of the server and save it
  --base <image>       image that it starts from (default: debian:stable-slim)
  --builder <program>  docker, podman or nerdctl (default: docker)
  --checked            .ci/run has passed on this commit; do not run it
  --no-benchmarks      do not run the short benchmarks, which fail where a
                       ratio is below a quarter of the stored one: they need
                       a machine that does nothing else, npm and apt
  --no-signatures      do not check the signatures of the packages: it needs
                       the registry and the keys of Sigstore
  --help               show this text
`

const ROOT = dirname(import.meta.dirname)

interface Release {
  readonly version: string
  readonly folder: string
  /** Builder and base of the image; undefined for a release without one. */
  readonly image: { readonly builder: string; readonly base: string | undefined } | undefined
  readonly date: string
}

if (import.meta.main) main()

function main(): void {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      to: { type: 'string' },
      date: { type: 'string', default: new Date().toISOString().slice(0, 10) },
      image: { type: 'boolean', default: false },
      base: { type: 'string' },
      builder: { type: 'string', default: 'docker' },
      checked: { type: 'boolean', default: false },
      'no-benchmarks': { type: 'boolean', default: false },
      'no-signatures': { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  const [version = ''] = positionals
  if (values.help || positionals.length !== 1) {
    process.stdout.write(HELP)
    process.exitCode = values.help ? 0 : 2
    return
  }
  const folder = resolve(values.to ?? join(ROOT, 'release', version))
  try {
    assertReleasable(version, folder)
    if (!values.checked) step('check', () => run('.ci/run'))
    if (!values['no-benchmarks']) step('benchmarks', () => run('npm', 'run', '--silent', 'bench', '--', '--quick'))
    if (!values['no-signatures']) step('signatures of packages', () => run('npm', 'audit', 'signatures'))
    const image = values.image ? { builder: values.builder, base: values.base } : undefined
    make({ version, folder, image, date: values.date })
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
    process.exitCode = 1
  }
}

/** Refuses a release that would have to be undone by hand. */
function assertReleasable(version: string, folder: string): void {
  if (!isVersion(version)) throw new Error(`${version} is not a version, such as 1.2.3 or 1.2.3-rc.1`)
  const present = (JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }).version
  if (compareVersions(version, present) < 0) throw new Error(`${version} is older than ${present}`)
  if (git('tag', '--list', `v${version}`) !== '') throw new Error(`the tag v${version} already exists`)
  if (git('status', '--porcelain') !== '') throw new Error('some changes are not committed')
  mkdirSync(folder, { recursive: true })
  if (readdirSync(folder).length > 0) throw new Error(`${folder} is not empty`)
}

function make({ version, folder, image, date }: Release): void {
  const { files, notes } = changedFiles(path => readFileSync(join(ROOT, path), 'utf8'), version, date)
  try {
    for (const [path, text] of Object.entries(files)) writeFileSync(join(ROOT, path), text)
    step('packages', () => pack(folder))
    if (image !== undefined) step('image', () => saveImage(image, version, folder))
    writeFileSync(join(folder, 'schema.graphql'), schemaText())
    writeFileSync(join(folder, 'notes.md'), notes)
    writeFileSync(join(folder, 'SHA256SUMS'), sums(folder))
    step('commit and tag', () => {
      run('git', 'commit', '--quiet', '--message', `release: ${version}`, '--', ...Object.keys(files))
      run('git', 'tag', '--annotate', '--message', `Runyard ${version}`, `v${version}`)
    })
  } catch (error) {
    run('git', 'checkout', '--quiet', 'HEAD', '--', ...Object.keys(files))
    throw error
  }
  process.stdout.write(remaining(version, folder))
}

/** Writes the packages as npm publishes them, and the bill of materials that is in the first. */
function pack(folder: string): void {
  const npm = ['pack', '--silent', '--pack-destination', folder]
  execFileSync('npm', npm, { cwd: ROOT, stdio: ['ignore', 'ignore', 'inherit'] })
  execFileSync('npm', npm, { cwd: join(ROOT, 'packages/worker'), stdio: ['ignore', 'ignore', 'inherit'] })
  const archive = readdirSync(folder).find(name => /^runyard-\d/.test(name))!
  const tar = ['-xzOf', join(folder, archive), 'package/dist/runyard.cdx.json']
  writeFileSync(join(folder, 'runyard.cdx.json'), execFileSync('tar', tar, { maxBuffer: 64 << 20 }))
}

function saveImage({ builder, base }: NonNullable<Release['image']>, version: string, folder: string): void {
  const tag = `runyard:${version}`
  const from = base === undefined ? [] : ['--base', base]
  run(process.execPath, 'scripts/image.ts', '--builder', builder, '--tag', tag, ...from)
  const archive = join(folder, `runyard-${version}-${process.arch}.image.tar`)
  run(builder, 'save', '--output', archive, tag)
  assertSaved({ builder, tag, version, archive })
}

/** Refuses an archive without the image, and an image whose program is another version or does not start. */
function assertSaved({
  builder,
  tag,
  version,
  archive,
}: {
  builder: string
  tag: string
  version: string
  archive: string
}): void {
  const read = (program: string, ...words: string[]) => execFileSync(program, words, { encoding: 'utf8' })
  const images: { RepoTags: string[] | null }[] = JSON.parse(read('tar', '-xOf', archive, 'manifest.json'))
  // podman writes the name with its registry.
  if (!images.some(({ RepoTags }) => RepoTags?.some(name => name === tag || name.endsWith(`/${tag}`))))
    throw new Error(`${archive} does not hold ${tag}`)
  const printed = read(builder, 'run', '--rm', tag, '--version').trim()
  if (printed !== version) throw new Error(`the program of ${tag} has version ${printed}`)
}

function sums(folder: string): string {
  const names = readdirSync(folder).sort()
  const hash = (name: string) =>
    createHash('sha256')
      .update(readFileSync(join(folder, name)))
      .digest('hex')
  return names.map(name => `${hash(name)}  ${name}\n`).join('')
}

/**
 * The remaining steps. `publishConfig` requires a proof of the build, which npm gives only to builds
 * of services that it trusts.
 */
function remaining(version: string, folder: string): string {
  const label = version.includes('-') ? ' --tag next' : ''
  return `
Runyard ${version} is made, in ${folder}. Nothing is published. To publish it:

  git push origin HEAD v${version}
  npm publish${label} ${join(folder, `runyard-worker-${version}.tgz`)}
  npm publish${label} ${join(folder, `runyard-${version}.tgz`)}

npm publish asks for provenance, which it has in GitHub Actions and GitLab CI.
To take the release back: git tag --delete v${version} && git reset --hard HEAD~1
`
}

function step(name: string, work: () => void): void {
  process.stdout.write(`== ${name}\n`)
  work()
}

function run(program: string, ...words: string[]): void {
  execFileSync(program, words, { cwd: ROOT, stdio: ['ignore', 'inherit', 'inherit'] })
}

function git(...words: string[]): string {
  return execFileSync('git', words, { cwd: ROOT, encoding: 'utf8' }).trim()
}
