/** Builds images of folders that have a Dockerfile. */
import { existsSync, lstatSync, readFileSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import type { Readable } from 'node:stream'
import { stripVTControlCharacters } from 'node:util'
import ignoring from '@balena/dockerignore'
import { pack } from 'tar-fs'
import { AppError } from '../../../core/errors.ts'
import type { EngineClient } from '../engine/engine-client.ts'
import { engineRefusal } from '../engine/engine-error.ts'

/** One build of an image. */
export interface Build {
  readonly engine: EngineClient
  /** Absolute path of the folder. */
  readonly folder: string
  /** The image's name, with or without a tag; null without one. */
  readonly name: string | null
  /** Path of the Dockerfile within the folder; `Dockerfile` by default. */
  readonly dockerfile?: string
  readonly args?: Readonly<Record<string, string>>
  /** Further files for the engine, by their paths in the folder. */
  readonly added?: Readonly<Record<string, Buffer>>
  readonly labels?: Readonly<Record<string, string>>
  /** True to build all steps again. */
  readonly noCache?: boolean
  /** True to download newer base images. */
  readonly pull?: boolean
  /** Called with the output of the engine as it comes. */
  readonly onOutput?: (text: string) => void
}

/** A part of the output of an engine's build. */
interface Part {
  readonly stream?: string
  readonly status?: string
  readonly error?: string
  readonly aux?: { readonly ID?: string }
}

// Its types name an export that its code has under another one.
const createIgnore = ignoring as unknown as typeof ignoring.default

const LAST_LINES = 20
/** The error of npm in a build of a folder that names the worker SDK by its version. */
const NO_WORKER_PACKAGE = /404[^\n]{0,200}@runyard(?:\/|%2f)worker/i
const MAX_OUTPUT = 16_384

/**
 * Builds an image.
 * @returns its id, as `sha256:...`
 * @throws AppError `not_found` without a Dockerfile, `invalid` with the step that failed and the end of its output,
 * `unavailable` when there is no engine
 */
export async function buildImage(build: Build): Promise<string> {
  const {
    engine,
    folder,
    name,
    dockerfile = 'Dockerfile',
    args = {},
    added = {},
    labels = {},
    noCache = false,
    pull = false,
  } = build
  requireDockerfile(folder, dockerfile)
  const context = buildContext(folder, dockerfile, added)
  const broken = new AbortController()
  let problem: Error | null = null
  context.on('error', error => {
    problem = error
    broken.abort()
  })
  try {
    const query = {
      dockerfile,
      labels,
      buildargs: args,
      nocache: noCache,
      rm: true,
      forcerm: true,
      ...(name === null ? {} : { t: name }),
      ...(pull ? { pull: true } : {}),
    }
    const { signal } = broken
    const output = await engine.stream({ method: 'POST', path: '/build', query, archive: context, signal })
    return await follow(output, build)
  } catch (thrown) {
    if (problem !== null) throw new AppError('invalid', `cannot read the folder: ${(problem as Error).message}`)
    throw buildRefusal(thrown)
  } finally {
    context.destroy()
  }
}

function requireDockerfile(folder: string, dockerfile: string): void {
  const file = join(folder, dockerfile)
  if (!existsSync(folder)) throw new AppError('not_found', `the folder ${folder} does not exist`)
  if (relative(folder, file).startsWith('..')) throw new AppError('invalid', `${dockerfile} is not within ${folder}`)
  try {
    if (lstatSync(file).isFile()) return
  } catch {
    // The error below reports it.
  }
  throw new AppError(
    'not_found',
    `${folder} has no ${dockerfile}; the folders examples/container-* show one for Python, Node and a server`,
  )
}

/**
 * The files of a folder for the engine: all but those that .dockerignore names, without owners, whose numbers mean
 * nothing there.
 */
export function buildContext(
  folder: string,
  dockerfile: string,
  added: Readonly<Record<string, Buffer>> = {},
): Readable {
  const text = ignoreText(folder, dockerfile)
  const keeps = createIgnore({ ignorecase: false }).add(text).createFilter()
  const exceptions = listExceptions(text)
  const needed = new Set([dockerfile, '.dockerignore'].map(path => path.split('/').join(sep)))
  const neededFolders = new Set(
    [...needed].flatMap(path =>
      path
        .split(sep)
        .slice(0, -1)
        .map((_, at, all) => all.slice(0, at + 1).join(sep)),
    ),
  )
  return pack(folder, {
    sort: true,
    ignore: path => {
      const name = relative(folder, path)
      if (name === '' || needed.has(name) || neededFolders.has(name) || keeps(name)) return false
      // Something in a folder may be wanted although the folder is not.
      return !(exceptions.some(pattern => mayLieIn(name, pattern)) && lstatSync(path).isDirectory())
    },
    map: header => Object.assign(header, { uid: 0, gid: 0 }),
    finalize: false,
    finish: context => {
      for (const [name, bytes] of Object.entries(added)) context.entry({ name }, bytes)
      context.finalize()
    },
  })
}

/** The paths that .dockerignore takes back, as patterns in their parts. */
function listExceptions(text: string): readonly (readonly string[])[] {
  const lines = text.split(/\r?\n/).map(line => line.trim())
  return lines
    .filter(line => line.startsWith('!'))
    .map(line =>
      line
        .slice(1)
        .trim()
        .replace(/^\.?\//, '')
        .split('/'),
    )
}

function mayLieIn(folder: string, pattern: readonly string[]): boolean {
  const parts = folder.split(sep)
  const wildcardAt = pattern.indexOf('**')
  if (wildcardAt === -1 && pattern.length <= parts.length) return false
  return parts.every(
    (part, at) => (wildcardAt !== -1 && at >= wildcardAt) || pattern[at] === part || /[*?[\\]/.test(pattern[at] ?? ''),
  )
}

/** A list for one Dockerfile alone goes before that of the folder. */
function ignoreText(folder: string, dockerfile: string): string {
  for (const name of [`${dockerfile}.dockerignore`, '.dockerignore']) {
    try {
      return readFileSync(join(folder, name), 'utf8')
    } catch {
      // The file may be missing.
    }
  }
  return ''
}

async function follow(stream: Readable, { onOutput = () => {}, engine, name }: Build): Promise<string> {
  let step = ''
  let output = ''
  let id: string | null = null
  for await (const part of readParts(stream)) {
    if (part.error !== undefined) throw buildFailure(step, part.error, output)
    id = part.aux?.ID ?? id
    const text = part.stream ?? (part.status === undefined ? '' : `${part.status}\n`)
    const stepLine = /^Step \d+\/\d+ : .*/.exec(text)
    if (stepLine !== null) {
      step = stepLine[0].trim()
      output = ''
    } else output = `${output}${text}`.slice(-MAX_OUTPUT)
    if (text !== '') onOutput(text)
  }
  if (id !== null) return id
  // Podman does not report the id.
  if (name !== null) return (await engine.call<{ Id: string }>({ method: 'GET', path: `/images/${name}/json` })).Id
  throw new AppError('unavailable', 'the engine ended the build without a word')
}

/** Each line of the answer is one part. */
async function* readParts(stream: Readable): AsyncGenerator<Part> {
  let rest = ''
  stream.setEncoding('utf8')
  try {
    for await (const piece of stream) {
      const lines = (rest + String(piece)).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) if (line.trim() !== '') yield JSON.parse(line) as Part
    }
  } catch (cause) {
    throw new AppError('unavailable', `the engine broke the build off: ${(cause as Error).message}`, { cause })
  }
  if (rest.trim() !== '') yield JSON.parse(rest) as Part
}

function buildFailure(step: string, error: string, output: string): AppError {
  const place =
    step === '' ? 'the image cannot be built' : `the build failed in ${step.replace(/^Step (\S+) : /, 'step $1: ')}`
  const lines = stripVTControlCharacters(output).split(/[\r\n]+/)
  const messages = lines.filter(line => line.trim() !== '' && !/^ ---> |^Removing intermediate container /.test(line))
  const hints = [
    ...(/requires BuildKit|unknown flag|unknown instruction: <</i.test(error)
      ? ["this needs BuildKit: build it with 'docker buildx build --load', workers run such images as well"]
      : []),
    ...(NO_WORKER_PACKAGE.test(output)
      ? [
          "@runyard/worker is on no registry: name it in package.json as 'file:vendor/runyard-worker.tgz', and let the Dockerfile copy vendor before npm install; Runyard adds the file",
        ]
      : []),
  ]
  const failures = [error.trim(), ...messages.slice(-LAST_LINES), ...hints]
  return new AppError('invalid', place, { failures })
}

function buildRefusal(thrown: unknown): AppError {
  return engineRefusal(
    thrown,
    message => new AppError('invalid', `the engine does not build it: ${message}`, { cause: thrown }),
  )
}

/** The files of a folder that an archive contains. */
export interface PackageFiles {
  readonly folder: string
  /** Files and folders in it, without `package.json`. */
  readonly files: readonly string[]
  /** The text of `package.json`. */
  readonly manifest: string
}

/**
 * An archive of a package that is not compressed, the same for the same files: without owners, times and the modes of
 * this machine.
 */
export function packageTar({ folder, files, manifest }: PackageFiles): Readable {
  const entryHeader = (name: string) => ({ name: `package/${name}`, mtime: new Date(0), uid: 0, gid: 0 })
  return pack(folder, {
    // tar-fs removes them from the list.
    entries: [...files],
    sort: true,
    map: header =>
      Object.assign(header, entryHeader(header.name), { mode: header.type === 'directory' ? 0o755 : 0o644 }),
    finalize: false,
    finish: archive => {
      archive.entry(entryHeader('package.json'), Buffer.from(manifest))
      archive.finalize()
    },
  })
}
