/**
 * Builds the published program: `scripts/build.ts [folder]`, `dist` by default. All code that a server loads is in a
 * few files, packages included: a server that reads a thousand files takes a second longer to start.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import { dirname, join, relative } from 'node:path'
import { build as bundle, type Plugin } from 'esbuild'
import { PROGRAMS } from '../src/disk/package-files.ts'
import { billOfMaterials } from './bill-of-materials.ts'
import { buildConsole } from './console.ts'
import { licenseText, type Manifest } from './licenses.ts'

/** Packages that are not bundled, since they are large and few servers need them. */
const EXTERNAL = ['@graphql-yoga/render-graphiql', '@opentelemetry/exporter-trace-*']
/** Defines `require`, which packages of CommonJS call for modules of Node. */
const REQUIRE =
  "import { createRequire as requireFrom } from 'node:module'\nconst require = requireFrom(import.meta.url)"

/**
 * Loads `node:http` as a module of CommonJS. An import of it reads all exports, also those that load the client of
 * `fetch`: two thirds of the processor time of a start of Node.
 */
const HTTP_WITHOUT_FETCH: Plugin = {
  name: 'http-without-fetch',
  setup(build) {
    const all = Object.entries(Object.getOwnPropertyDescriptors(http) as PropertyDescriptorMap)
    const names = all.filter(([, { get }]) => get === undefined).map(([name]) => name)
    const contents = `const http = process.getBuiltinModule('node:http')\nexport default http\nexport const { ${names} } = http\n`
    build.onResolve({ filter: /^node:http$/ }, ({ path, kind }) =>
      kind === 'import-statement' ? { path, namespace: 'http-without-fetch', sideEffects: false } : null,
    )
    build.onLoad({ filter: /./, namespace: 'http-without-fetch' }, () => ({ contents }))
  },
}

const ROOT = dirname(import.meta.dirname)
/** Name of the Python package for workers of RunPod's SDK 2.0. */
const RUNTIME = 'runpod_sdk_runtime'
/** Files that load the worker SDK in workers whose folder does not have it. */
const WORKER_PRELOADS = ['preload.cjs', 'preload-hooks.mjs']

if (import.meta.main) {
  const folder = process.argv[2] ?? 'dist'
  rmSync(folder, { recursive: true, force: true })
  writeFiles(await publishedFiles(), folder)
}

/**
 * Writes a built program, whose entry is `cli/runyard.js`. The folder is named `dist`: by that name
 * the program finds its parts.
 */
export function writeFiles(files: readonly BuiltFile[], folder: string): void {
  for (const { path, contents } of files) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), contents)
  }
}

/** A file of the built program, with its path in the folder. */
export interface BuiltFile {
  readonly path: string
  readonly contents: Uint8Array | string
}

/** The files of the built program. */
export async function buildFiles(): Promise<BuiltFile[]> {
  return (await built()).files
}

/** The files of the built program, with the bill of its materials. */
export async function publishedFiles(): Promise<BuiltFile[]> {
  const { files, packages } = await built()
  const bill = `${JSON.stringify(billOfMaterials(packages), null, 1)}\n`
  return [...files, { path: 'runyard.cdx.json', contents: bill }]
}

/** The built program, and the folders of the packages whose files are in it. */
async function built(): Promise<{ readonly files: BuiltFile[]; readonly packages: readonly string[] }> {
  const { metafile, outputFiles } = await bundle({
    absWorkingDir: ROOT,
    entryPoints: ['cli/runyard', ...PROGRAMS].map(name => `src/${name}.ts`),
    outbase: 'src',
    outdir: ROOT,
    chunkNames: 'chunks/[name]-[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: `node${process.versions.node}`,
    external: [...EXTERNAL, 'pg-native'],
    banner: { js: REQUIRE },
    plugins: [HTTP_WITHOUT_FETCH],
    metafile: true,
    write: false,
    logLevel: 'warning',
  })
  const page = await buildConsole()
  const packages = listPackages([...Object.keys(metafile.inputs), ...page.inputs])
  const files = [
    ...outputFiles.map(({ path, contents }) => ({ path: relative(ROOT, path), contents })),
    ...page.files.map(({ path, contents }) => ({ path: join('console', path), contents })),
    ...workerFiles(),
    ...runtimeFiles(),
    { path: 'third-party-licenses.txt', contents: readLicenses(packages) },
  ]
  return { files, packages }
}

/** The files of the worker SDK for JavaScript, which servers give to their workers. */
function workerFiles(): BuiltFile[] {
  const folder = join(ROOT, 'packages/worker')
  execFileSync(process.execPath, [join(folder, 'build.mjs')], { stdio: ['ignore', 'ignore', 'inherit'] })
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest & { files: string[] }
  const names = [...WORKER_PRELOADS, ...manifest.files.filter(name => name !== 'dist')]
  const built = readdirSync(join(folder, 'dist'), { recursive: true, encoding: 'utf8' })
  const paths = [...names, ...built.map(name => join('dist', name)).filter(path => /\.(?:js|d\.ts|json)$/.test(path))]
  const files = paths.map(path => ({ path: join('worker', path), contents: readFileSync(join(folder, path)) }))
  // npm runs the scripts of a linked package, so it has none.
  const linkable = { ...manifest, scripts: undefined, devDependencies: undefined }
  return [...files, { path: 'worker/package.json', contents: `${JSON.stringify(linkable, null, 2)}\n` }]
}

/** The files of the Python package that workers of RunPod's SDK 2.0 run. */
function runtimeFiles(): BuiltFile[] {
  const folder = join(ROOT, 'packages/runtime')
  const names = readdirSync(join(folder, RUNTIME), { recursive: true, encoding: 'utf8' })
  const paths = names.filter(name => name.endsWith('.py')).map(name => join(RUNTIME, name))
  return paths.map(path => ({ path: join('runtime', path), contents: readFileSync(join(folder, path)) }))
}

function listPackages(files: readonly string[]): string[] {
  const folders = files.flatMap(file => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file) ?? [])
  return [...new Set(folders)].sort()
}

/**
 * Licenses of the packages whose files are in the built program.
 * @throws where a package has no text of its license
 */
function readLicenses(packages: readonly string[]): string {
  const texts = packages.map(folder => {
    const place = join(ROOT, folder)
    const manifest = JSON.parse(readFileSync(join(place, 'package.json'), 'utf8')) as Manifest
    const named = (pattern: RegExp) => {
      const file = readdirSync(place).find(name => pattern.test(name))
      return file === undefined ? undefined : readFileSync(join(place, file), 'utf8')
    }
    const text = licenseText(manifest, named(/^licen[cs]e/i), named(/^readme/i))
    return `${manifest.name} ${manifest.version}, ${manifest.license}\n\n${text}\n`
  })
  return `Packages that are part of this program.\n\n${texts.join(`\n${'-'.repeat(80)}\n\n`)}`
}
