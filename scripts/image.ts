/**
 * Builds the image of the server: `npm run image -- [options]`. The image has the architecture of this machine, since
 * npm installs the pinned Node for this one alone.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, relative } from 'node:path'
import { parseArgs } from 'node:util'
import { publishedFiles, writeFiles } from './build.ts'

const HELP = `npm run image -- [options]

  --tag <name>         name of the image (default: runyard:<version>)
  --base <image>       image to start from, with glibc (default: debian:stable-slim)
  --builder <program>  docker, podman or nerdctl (default: docker)
  --context <folder>   only write the folder that the image is built from
  --help               show this text
`

const ROOT = dirname(import.meta.dirname)

/** A package of this repository, which npm installs as a link; the built program has it already. */
const WORKER = 'node_modules/@runyard/worker'
/** The parts of the pinned Node that nothing runs. */
const UNUSED = ['include', 'share', 'CHANGELOG.md', 'README.md']

if (import.meta.main) await main()

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      tag: { type: 'string', default: `runyard:${manifest().version}` },
      base: { type: 'string' },
      builder: { type: 'string', default: 'docker' },
      context: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) {
    process.stdout.write(HELP)
    return
  }
  if (values.context !== undefined) {
    await writeContext(values.context)
    return
  }
  const folder = mkdtempSync(join(tmpdir(), 'runyard-image-'))
  try {
    await writeContext(folder)
    const base = values.base === undefined ? [] : ['--build-arg', `BASE=${values.base}`]
    const words = ['build', '--file', join(ROOT, 'deploy/Dockerfile'), '--tag', values.tag, ...base, folder]
    execFileSync(values.builder, words, { stdio: 'inherit' })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * Writes the content of the image: the published program, and the packages that it imports,
 * as npm installed them here.
 */
export async function writeContext(folder: string): Promise<void> {
  const { files } = manifest()
  for (const name of ['package.json', 'LICENSE', ...files.filter(file => file !== 'dist')]) take(name, folder)
  writeFiles(await publishedFiles(), join(folder, 'dist'))
  for (const path of installedPackages().filter(path => path !== WORKER)) take(path, folder)
  // The user of the image is not the owner of these files, and has to read them.
  execFileSync('chmod', ['-R', 'a+rX', folder])
}

/**
 * Copies a file or folder to the same place in another folder, without the packages in it, which are
 * copied by their own names.
 */
function take(path: string, folder: string): void {
  const from = join(ROOT, path)
  const isNode = /^node(?:-bin)?-(?:linux|darwin)-/.test(basename(path))
  mkdirSync(dirname(join(folder, path)), { recursive: true })
  const wanted = (file: string) => {
    const [first = ''] = relative(from, file).split('/')
    return first !== 'node_modules' && !(isNode && UNUSED.includes(first))
  }
  cpSync(from, join(folder, path), { recursive: true, filter: wanted })
}

/**
 * The folders of the packages of an installation without packages of development, relative to
 * the root of the repository.
 */
function installedPackages(): string[] {
  const npm = ['ls', '--omit=dev', '--all', '--parseable', '--loglevel=error']
  const lines = execFileSync('npm', npm, { cwd: ROOT, encoding: 'utf8' }).trim().split('\n')
  return lines.map(line => relative(ROOT, line)).filter(path => path.startsWith('node_modules/'))
}

function manifest(): { readonly version: string; readonly files: readonly string[] } {
  return JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
}
