/**
 * Builds the site of the documentation: `./bin/node scripts/site.ts [folder] [--base /path/]`, `docs/site/dist` by default. It installs VitePress in
 * `docs/site` where it is not there. Links that lead nowhere, and pages without a part, end it.
 */
import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { files, read } from '../test/tidy/files.ts'
import { schemaText } from './schema.ts'
import { apiPage } from './site/api.ts'
import { frontPage } from './site/front-page.ts'
import { llmsFullText, llmsText, makeSite, type Site, sitePath, summaryOf, titleOf } from './site/pages.ts'

const ROOT = dirname(import.meta.dirname)
const HOME = join(ROOT, 'docs/site')
/** In the folder of the site: pages find the packages of the site from where they are. */
const SOURCE = join(HOME, 'source')

if (import.meta.main) main()

function main(): void {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { base: { type: 'string', default: '/' } },
  })
  if (!/^\/(?:.*\/)?$/.test(values.base)) throw new Error(`--base ${values.base} does not begin and end with /`)
  buildSite(resolve(positionals[0] ?? join(HOME, 'dist')), values.base)
}

/** @param base the path below which the site is served */
function buildSite(folder: string, base: string): void {
  const site = makeSite({ files, read, api: apiPage() })
  if (site.mistakes.length > 0) throw new Error(site.mistakes.join('\n'))
  rmSync(SOURCE, { recursive: true, force: true })
  for (const [path, { text }] of site.pages) write(join(SOURCE, path), shown(path, text, site))
  for (const [path, from] of site.pictures) {
    mkdirSync(dirname(join(SOURCE, path)), { recursive: true })
    copyFileSync(join(ROOT, from), join(SOURCE, path))
  }
  mkdirSync(join(SOURCE, 'public'))
  copyFileSync(join(ROOT, 'console/icon.svg'), join(SOURCE, 'public/icon.svg'))
  write(join(SOURCE, 'site.json'), JSON.stringify({ base, parts: partsOf(site) }))
  write(join(SOURCE, '.vitepress/config.mjs'), "export { default } from '../../config.mjs'\n")
  write(join(SOURCE, '.vitepress/theme/index.mjs'), "export { default } from '../../../theme.mjs'\n")
  if (!existsSync(join(HOME, 'node_modules/vitepress'))) run('npm', 'ci', '--silent', '--no-audit', '--no-fund')
  run(join(HOME, 'node_modules/.bin/vitepress'), 'build', 'source', '--outDir', folder)
  // What llms.txt leads to lies beside the pages.
  for (const [path, { text }] of site.pages) write(join(folder, path), text)
  write(join(folder, 'reference/schema.graphql'), schemaText())
  write(join(folder, 'llms.txt'), llmsText(site, base))
  write(join(folder, 'llms-full.txt'), llmsFullText(site))
  process.stdout.write(`${site.pages.size} pages in ${folder}\n`)
}

/** A page with what VitePress is told of it. */
function shown(path: string, text: string, site: Site): string {
  if (path === 'index.md') return frontPage(text, site)
  return `---\n${JSON.stringify({ title: titleOf(text), description: summaryOf(text) })}\n---\n\n${text}`
}

/** What the lists of pages show: titles, labels and places. */
function partsOf({ parts, pages }: Site): unknown {
  return parts.map(({ title, groups }) => ({
    title,
    groups: groups.map(group => ({
      title: group.title,
      pages: group.pages.map(({ source, label }) => {
        const path = sitePath(source)
        return { label: label ?? titleOf(pages.get(path)!.text), path: `/${path.replace(/\.md$/, '')}` }
      }),
    })),
  }))
}

function write(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}

function run(program: string, ...words: string[]): void {
  execFileSync(program, words, { cwd: HOME, stdio: ['ignore', 'inherit', 'inherit'] })
}
