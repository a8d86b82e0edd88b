/** Projects that an environment of Python uses where they lie (`pip install -e`, `uv sync`): their code is in none of its folders. */
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Limits of packages of an environment that are looked at, of what is read of one, and of environments that are remembered. */
const MAX_PACKAGES = 2_000
const MAX_BYTES = 4_096
const MAX_KNOWN = 100

/** Cache of the projects that were found, by folder of packages; valid until something is installed there. */
const known = new Map<string, { readonly changedMs: number; readonly projects: readonly string[] }>()

/**
 * The folders of the projects of an environment, as its packages name them.
 * @param environment its folder, in which `bin` and `lib` lie
 */
export async function editableProjects(environment: string): Promise<string[]> {
  const lib = join(environment, 'lib')
  const versions = (await readdir(lib).catch(() => [])).filter(name => name.startsWith('python3'))
  const found = await Promise.all(versions.map(name => projectsIn(join(lib, name, 'site-packages'))))
  return found.flat()
}

async function projectsIn(packages: string): Promise<readonly string[]> {
  const changedMs = (await stat(packages).catch(() => null))?.mtimeMs
  if (changedMs === undefined) return []
  const before = known.get(packages)
  if (before?.changedMs === changedMs) return before.projects
  const names = (await readdir(packages).catch(() => [])).filter(name => name.endsWith('.dist-info'))
  const found = await Promise.all(names.slice(0, MAX_PACKAGES).map(name => projectOf(join(packages, name))))
  const projects = found.filter(path => path !== null)
  if (known.size >= MAX_KNOWN) known.clear()
  known.set(packages, { changedMs, projects })
  return projects
}

/** By the note that installers leave (PEP 610). */
async function projectOf(note: string): Promise<string | null> {
  try {
    const text = await readFile(join(note, 'direct_url.json'), 'utf8')
    if (text.length > MAX_BYTES) return null
    const { url, dir_info: info } = JSON.parse(text) as { url?: unknown; dir_info?: { editable?: unknown } }
    return typeof url === 'string' && info?.editable === true ? fileURLToPath(url) : null
  } catch {
    return null
  }
}
