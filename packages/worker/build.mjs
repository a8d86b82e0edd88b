/**
 * Builds `dist` if it is missing or older than `src`. npm runs this (`prepare`) when it packs the package or
 * links this folder, on Node 20 or newer. The compiler is that of the clone; if `npm ci` was not run there, a
 * temporary one is installed.
 */
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

const FOLDER = import.meta.dirname ?? dirname(new URL(import.meta.url).pathname)
const DIST = join(FOLDER, 'dist')
/** Written last, so that an interrupted build is repeated. */
const LAST = join(DIST, 'bundled/package.json')

if (!isFresh()) build()

function isFresh() {
  if (!existsSync(LAST)) return false
  const built = statSync(LAST).mtimeMs
  const sources = [
    'package.json',
    'tsconfig.build.json',
    ...readdirSync(join(FOLDER, 'src')).map(name => join('src', name)),
  ]
  return sources.every(file => statSync(join(FOLDER, file)).mtimeMs <= built)
}

function build() {
  const root = join(FOLDER, '../..')
  const tsc = join(root, 'node_modules/typescript/bin/tsc')
  if (existsSync(tsc)) return compile(tsc, [])
  // So it is with `npm ci --omit=dev` in a clone, whose server runs the sources.
  if ((process.env.npm_config_omit ?? '').split(/[\s,]+/).includes('dev')) return
  const folder = mkdtempSync(join(tmpdir(), 'runyard-worker-build-'))
  try {
    const { devDependencies: own } = readManifest(FOLDER)
    const { devDependencies: shared } = readManifest(root)
    const wanted = { ...own, typescript: shared.typescript, '@types/node': shared['@types/node'] }
    writeFileSync(join(folder, 'package.json'), '{"private":true}\n')
    const packages = Object.entries(wanted).map(([name, version]) => `${name}@${version}`)
    const npm = ['install', '--silent', '--no-audit', '--no-fund', '--ignore-scripts', '--prefix', folder, ...packages]
    execFileSync('npm', npm, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] })
    const modules = join(folder, 'node_modules')
    compile(join(modules, 'typescript/bin/tsc'), [
      '--typeRoots',
      `${join(modules, '@types')},${modules}`,
      '--types',
      'node',
    ])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Compiles into another folder first, since workers may still read the old one. */
function compile(tsc, options) {
  mkdirSync(join(FOLDER, 'node_modules'), { recursive: true })
  const made = mkdtempSync(join(FOLDER, 'node_modules/.dist-'))
  try {
    const run = (...more) =>
      execFileSync(process.execPath, [tsc, '-p', 'tsconfig.build.json', ...options, ...more], {
        cwd: FOLDER,
        stdio: 'inherit',
      })
    run('--outDir', made)
    writeFileSync(join(made, 'package.json'), '{"type":"commonjs"}\n')
    run('--module', 'esnext', '--declaration', 'false', '--outDir', join(made, 'bundled'))
    writeFileSync(join(made, 'bundled/package.json'), '{"type":"module"}\n')
    // Only its owner can read a temporary folder.
    chmodSync(made, 0o755)
    rmSync(DIST, { recursive: true, force: true })
    renameSync(made, DIST)
  } finally {
    rmSync(made, { recursive: true, force: true })
  }
}

function readManifest(folder) {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
}
