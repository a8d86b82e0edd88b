/** Folders that a worker in a cage reads, so that its Python and its packages work wherever they lie. */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { programFolders } from '../../../src/drivers/cage/folders.ts'

const root = realpathSync(mkdtempSync(join(tmpdir(), 'runyard-')))
after(() => rmSync(root, { recursive: true, force: true }))
const home = join(root, 'home')
const image = join(root, 'image')
mkdirSync(image, { recursive: true })

/** An environment whose Python is a link. */
function environment(path: string, python: string, base: string): string {
  mkdirSync(join(path, 'bin'), { recursive: true })
  mkdirSync(join(path, 'lib', 'python3.12', 'site-packages'), { recursive: true })
  writeFileSync(join(path, 'pyvenv.cfg'), `home = ${base}\ninclude-system-site-packages = false\n`)
  symlinkSync(python, join(path, 'bin', 'python'))
  return join(path, 'bin', 'python')
}

const shown = (program: string, path = '/usr/bin') => programFolders({ image, programs: [program], path, home })

test('an environment elsewhere is shown with the installation that it was made of, by all paths that lead there', async () => {
  const pythons = join(home, '.local/share/uv/python')
  const real = join(pythons, 'cpython-3.12.11-linux')
  mkdirSync(join(real, 'bin'), { recursive: true })
  writeFileSync(join(real, 'bin', 'python3.12'), '')
  const linked = join(pythons, 'cpython-3.12-linux')
  symlinkSync('cpython-3.12.11-linux', linked)
  const venv = join(home, 'venvs', 'mine')
  const folders = await shown(environment(venv, join(linked, 'bin', 'python3.12'), join(linked, 'bin')))
  for (const folder of [venv, linked, real]) assert.ok(folders.includes(folder), `${folder} of ${folders}`)
  for (const folder of [home, join(home, '.local'), pythons, root]) assert.ok(!folders.includes(folder), folder)
})

test('projects that an environment uses where they lie are shown, and never a home', async () => {
  const venv = join(root, 'other', '.venv')
  const program = environment(venv, '/usr/bin/env', '/usr/bin')
  const library = join(home, 'src', 'library')
  mkdirSync(library, { recursive: true })
  const install = (name: string, url: string, editable: boolean) => {
    const note = join(venv, 'lib/python3.12/site-packages', `${name}-1.0.dist-info`)
    mkdirSync(note)
    writeFileSync(join(note, 'direct_url.json'), JSON.stringify({ url, dir_info: { editable } }))
  }
  install('library', `file://${library}`, true)
  install('copied', `file://${join(home, 'src')}`, false)
  install('home', `file://${home}`, true)
  install('all', 'file:///', true)
  install('odd', 'https://example.org/x', true)
  const folders = await shown(program)
  assert.ok(folders.includes(library), folders.join(' '))
  for (const folder of [home, join(home, 'src'), '/']) assert.ok(!folders.includes(folder), folder)
})

test('a link to a folder of programs shows that installation, and not what lies beside the link', async () => {
  const tool = join(root, 'tool')
  mkdirSync(join(tool, 'bin'), { recursive: true })
  const beside = join(root, 'beside')
  mkdirSync(beside)
  symlinkSync(join(tool, 'bin'), join(beside, 'bin'))
  const folders = await shown('/usr/bin/env', `/bin:${join(beside, 'bin')}`)
  assert.ok(folders.includes(tool) && folders.includes(join(beside, 'bin')))
  for (const folder of ['/', root, beside]) assert.ok(!folders.includes(folder), folder)
})
