/**
 * Builds the site of the documentation: `./bin/node scripts/site.ts [folder]`, `docs/site/dist` by default. It installs VitePress in `docs/site`
 * where it is not there. Links that lead nowhere end it.
 */
import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { files, read } from '../test/tidy/files.ts'
import { apiPage } from './site/api.ts'
import { llmsText, makeSite, type Site, sitePath, titleOf } from './site/pages.ts'

const ROOT = dirname(import.meta.dirname)
const HOME = join(ROOT, 'docs/site')
/** In the folder of the site: pages find the packages of the site from where they are. */
const SOURCE = join(HOME, 'source')

if (import.meta.main) buildSite(resolve(process.argv[2] ?? join(HOME, 'dist')))

function buildSite(folder: string): void {
  const site = makeSite({ files, read, api: apiPage() })
  if (site.deadLinks.length > 0) throw new Error(site.deadLinks.join('\n'))
  rmSync(SOURCE, { recursive: true, force: true })
  for (const [path, { text }] of site.pages) write(join(SOURCE, path), text)
  for (const [path, from] of site.pictures) {
    mkdirSync(dirname(join(SOURCE, path)), { recursive: true })
    copyFileSync(join(ROOT, from), join(SOURCE, path))
  }
  write(join(SOURCE, 'sidebar.json'), JSON.stringify(sidebarOf(site)))
  write(join(SOURCE, '.vitepress/config.mjs'), "export { default } from '../../config.mjs'\n")
  if (!existsSync(join(HOME, 'node_modules/vitepress'))) run('npm', 'ci', '--silent', '--no-audit', '--no-fund')
  run(join(HOME, 'node_modules/.bin/vitepress'), 'build', 'source', '--outDir', folder)
  // What llms.txt leads to lies beside the pages.
  for (const [path, { text }] of site.pages) write(join(folder, path), text)
  write(join(folder, 'llms.txt'), llmsText(site))
  process.stdout.write(`${site.pages.size} pages in ${folder}\n`)
}

function sidebarOf(site: Site): unknown {
  return site.parts.map(({ title, pages }) => {
    const items = pages.map(source => {
      const path = sitePath(source)
      return { text: titleOf(site.pages.get(path)!.text), link: `/${path.replace(/\.md$/, '')}` }
    })
    return { text: title, collapsed: title !== 'Start', items }
  })
}

function write(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}

function run(program: string, ...words: string[]): void {
  execFileSync(program, words, { cwd: HOME, stdio: ['ignore', 'inherit', 'inherit'] })
}
