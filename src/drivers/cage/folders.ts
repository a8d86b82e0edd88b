/**
 * Folders of this machine that a worker in a cage reads: those of the system, of its image and of the programs that
 * run it.
 */
import { lstatSync, readlinkSync } from 'node:fs'
import { readdir, readFile, readlink, realpath, stat } from 'node:fs/promises'
import { basename, delimiter, dirname, isAbsolute, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { contains } from '../base/worker-paths.ts'

const SYSTEM = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/nix/store', '/gnu/store']
/** Libraries of GPUs, where a distribution or a vendor keeps them apart. */
const GPU_LIBRARIES = ['/opt/rocm', '/opt/cuda', '/opt/amdgpu', '/run/opengl-driver']

/**
 * Files in /etc that programs read. No secrets are among them: where the server is root's, a worker is the owner of
 * all of /etc.
 */
const ETC = [
  ...[
    'alternatives',
    'ca-certificates',
    'ca-certificates.conf',
    'crypto-policies',
    'pki',
    'ssl/certs',
    'ssl/openssl.cnf',
  ],
  ...[
    'ld.so.cache',
    'ld.so.conf',
    'ld.so.conf.d',
    'localtime',
    'locale.alias',
    'locale.conf',
    'timezone',
    'os-release',
  ],
  ...['passwd', 'group', 'hosts', 'host.conf', 'nsswitch.conf', 'resolv.conf', 'gai.conf', 'protocols', 'services'],
  ...['debian_version', 'fonts', 'glvnd', 'magic', 'magic.mime', 'mime.types', 'inputrc', 'profile', 'bash.bashrc'],
  ...['OpenCL', 'vulkan', 'nvidia', 'cuda', 'rocm', 'python3', 'perl', 'terminfo', 'ImageMagick-6', 'ImageMagick-7'],
].map(name => `/etc/${name}`)

/** Limit of links from a program to the next one. */
const MAX_LINKS = 16
const PROGRAM_FOLDERS = new Set(['bin', 'sbin', 'shims'])
/** Limit of entries of one `node_modules` that are checked for links that lead out of it. */
const MAX_MODULES = 10_000

/** The system's own folders and links to them, the same for all workers. */
export function systemFolders(): { readable: string[]; links: { path: string; target: string }[] } {
  const links: { path: string; target: string }[] = []
  const readable = [...ETC, ...GPU_LIBRARIES]
  for (const path of SYSTEM) {
    const stats = lstatSync(path, { throwIfNoEntry: false })
    if (stats?.isSymbolicLink() === true) links.push({ path, target: readlinkSync(path) })
    else if (stats !== undefined) readable.push(path)
  }
  return { readable, links }
}

/** Without paths that lie in another one: a folder is shown with all that it holds. */
export function outermost(paths: readonly string[]): string[] {
  const outer: string[] = []
  for (const path of [...new Set(paths)].sort((a, b) => a.length - b.length)) {
    if (!outer.some(folder => contains(folder, path))) outer.push(path)
  }
  return outer
}

/** The program of a worker, for {@link programFolders}. */
export interface ProgramFiles {
  /** The real path of the image. */
  readonly image: string
  /** The program that is started, and other programs that it may run. */
  readonly programs: readonly string[]
  /** The PATH of the server, not of the worker: a value of a template opens no folder. */
  readonly path: string
  /** The home of the person who runs the server, of which no more than folders of programs are shown. */
  readonly home: string
}

/** The folders of programs and of modules that lie outside of the system's. */
export async function programFolders({ image, programs, path, home }: ProgramFiles): Promise<string[]> {
  const entries = path.split(delimiter).filter(entry => entry.startsWith('/'))
  const folders = await Promise.all([
    ...entries.map(entry => installationFolders(entry, home)),
    ...programs.map(program => programInstallations(program, home)),
    modulesAbove(image),
  ])
  return [...new Set(folders.flat())].filter(folder => !SYSTEM.some(root => contains(root, folder)))
}

/**
 * A program by each of the links that lead to it, since a Python needs the folders of all of them; and where it is
 * that of an environment, the installation that this was made of, by the path that it names, and the projects that it
 * uses where they lie.
 */
async function programInstallations(program: string, home: string): Promise<string[]> {
  const paths = await linksFrom(program)
  const environment = dirname(dirname(program))
  const base = await readBaseFolder(environment)
  const folders = [...paths.map(path => dirname(path)), ...(base === null ? [] : [base])]
  const projects = await editableProjects(environment)
  const partFolders = await Promise.all([
    ...folders.map(folder => installationFolders(folder, home)),
    ...projects.map(project => projectFolders(project, home)),
  ])
  return [...partFolders.flat(), ...paths]
}

/** The path itself, those to which its links lead one after the other, and the real one. */
async function linksFrom(program: string): Promise<string[]> {
  const paths = [program]
  for (let path = program; paths.length <= MAX_LINKS; paths.push(path)) {
    const target = await readlink(path).catch(() => null)
    if (target === null) break
    path = resolve(dirname(path), target)
  }
  return [...new Set([...paths, await realpath(program).catch(() => program)])]
}

/** The folder of the Python of which an environment was made; null for a folder that is no environment. */
async function readBaseFolder(environment: string): Promise<string | null> {
  const text = await readFile(join(environment, 'pyvenv.cfg'), 'utf8').catch(() => '')
  for (const line of text.split('\n')) {
    const [name = '', ...value] = line.split('=')
    const path = value.join('=').trim()
    if (name.trim() === 'home' && isAbsolute(path)) return path
  }
  return null
}

/**
 * A folder `bin` stands for what it is a part of, with libraries beside it, by its real path and by the given one, in
 * which there may be links; never for a home or the root of the machine.
 */
async function installationFolders(folder: string, home: string): Promise<string[]> {
  const real = await realpath(folder).catch(() => null)
  if (real === null) return []
  const isPart = PROGRAM_FOLDERS.has(basename(real))
  const whole = isPart ? dirname(real) : real
  if (!isTooMuch(whole, home)) {
    const binFolder = dirname(folder)
    // Of a link such as /bin it is something else.
    const isSame = isPart && (await realpath(binFolder).catch(() => null)) === whole
    return [...new Set([whole, ...(isSame ? [binFolder] : []), folder])]
  }
  return real === '/' || contains(real, home) ? [] : [...new Set([real, folder])]
}

async function projectFolders(folder: string, home: string): Promise<string[]> {
  const real = await realpath(folder).catch(() => null)
  return real === null || isTooMuch(real, home) ? [] : [...new Set([real, folder])]
}

function isTooMuch(folder: string, home: string): boolean {
  return folder === '/' || contains(folder, home) || folder === join(home, '.local') || folder === '/opt'
}

/** Files of the folders above an image that Node reads: modules, and whether files are modules. */
async function modulesAbove(image: string): Promise<string[]> {
  const files: string[] = []
  for (let folder = image; folder !== dirname(folder); folder = dirname(folder)) {
    const modules = join(folder, 'node_modules')
    if (folder !== image) files.push(join(folder, 'package.json'))
    const names = await readdir(modules).catch(() => null)
    if (names === null) continue
    files.push(modules, ...(await findOutsidePackages(modules, names)))
  }
  return files
}

/** Packages of a workspace are links that lead out of `node_modules`. */
async function findOutsidePackages(modules: string, names: readonly string[]): Promise<string[]> {
  const scopes = names.filter(name => name.startsWith('@'))
  const scoped = await Promise.all(
    scopes.map(async scope => (await readdir(join(modules, scope)).catch(() => [])).map(name => join(scope, name))),
  )
  const outsideFolders: string[] = []
  for (const name of [...names, ...scoped.flat()].slice(0, MAX_MODULES)) {
    const path = join(modules, name)
    if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() !== true) continue
    const real = await realpath(path).catch(() => null)
    if (real !== null && !contains(modules, real) && (await stat(real)).isDirectory()) outsideFolders.push(real)
  }
  return outsideFolders
}

/**
 * Limits of packages of an environment that are looked at, of what is read of one, and of environments that are
 * remembered.
 */
const MAX_PACKAGES = 2_000
const MAX_BYTES = 4_096
const MAX_CACHED = 100

/** Cache of the projects that were found, by folder of packages; valid until something is installed there. */
const cachedProjects = new Map<string, { readonly changedMs: number; readonly projects: readonly string[] }>()

/**
 * The folders of the projects of an environment, as its packages name them.
 * @param environment its folder, in which `bin` and `lib` lie
 */
export async function editableProjects(environment: string): Promise<string[]> {
  const lib = join(environment, 'lib')
  const versions = (await readdir(lib).catch(() => [])).filter(name => name.startsWith('python3'))
  const projects = await Promise.all(versions.map(name => projectsIn(join(lib, name, 'site-packages'))))
  return projects.flat()
}

async function projectsIn(packages: string): Promise<readonly string[]> {
  const changedMs = (await stat(packages).catch(() => null))?.mtimeMs
  if (changedMs === undefined) return []
  const cached = cachedProjects.get(packages)
  if (cached?.changedMs === changedMs) return cached.projects
  const names = (await readdir(packages).catch(() => [])).filter(name => name.endsWith('.dist-info'))
  const paths = await Promise.all(names.slice(0, MAX_PACKAGES).map(name => editableProject(join(packages, name))))
  const projects = paths.filter(path => path !== null)
  if (cachedProjects.size >= MAX_CACHED) cachedProjects.clear()
  cachedProjects.set(packages, { changedMs, projects })
  return projects
}

/**
 * The project of a package that is installed as editable, by the note that installers leave (PEP 610); null for any
 * other.
 */
async function editableProject(note: string): Promise<string | null> {
  try {
    const text = await readFile(join(note, 'direct_url.json'), 'utf8')
    if (text.length > MAX_BYTES) return null
    const { url, dir_info: info } = JSON.parse(text) as { url?: unknown; dir_info?: { editable?: unknown } }
    return typeof url === 'string' && info?.editable === true ? fileURLToPath(url) : null
  } catch {
    return null
  }
}
