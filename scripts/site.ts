/**
 * Builds the site of the documentation: `./bin/node scripts/site.ts [folder] [--base /path/] [--repository
 * https://...]`, `docs/site/dist` by default. It installs VitePress in `docs/site` if it is missing. The front page
 * links to the repository if its address is given. Broken links, and pages without a part, end it.
 */
import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { files, read } from '../test/tidy/files.ts'
import { schemaText } from './schema.ts'
import { apiPage } from './site/api.ts'
import { frontPage, frontPicture } from './site/front-page.ts'
import { llmsFullText, llmsText, makeSite, pageSummary, pageTitle, type Site, sitePath } from './site/pages.ts'

const ROOT = dirname(import.meta.dirname)
const HOME = join(ROOT, 'docs/site')
/** Folder of the pages, in that of the site, since pages import its packages. */
const SOURCE = join(HOME, 'source')

if (import.meta.main) main()

function main(): void {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { base: { type: 'string', default: '/' }, repository: { type: 'string' } },
  })
  if (!/^\/(?:.*\/)?$/.test(values.base)) throw new Error(`--base ${values.base} does not begin and end with /`)
  const { repository = null } = values
  if (repository !== null && !/^https?:\/\/[^\s"'<>]+$/.test(repository))
    throw new Error(`--repository ${repository} is not an address that begins with https:// or http://`)
  buildSite(resolve(positionals[0] ?? join(HOME, 'dist')), { base: values.base, repository })
}

interface SiteOptions {
  /** Path below which the site is served. */
  readonly base: string
  /** Address of the repository; null where none is given. */
  readonly repository: string | null
}

function buildSite(folder: string, { base, repository }: SiteOptions): void {
  const site = makeSite({ files, read, api: apiPage() })
  if (site.mistakes.length > 0) throw new Error(site.mistakes.join('\n'))
  rmSync(SOURCE, { recursive: true, force: true })
  for (const [path, { text }] of site.pages) write(join(SOURCE, path), shown(path, text, { site, repository }))
  for (const [path, from] of site.pictures) copy(from, path)
  const { light, dark } = frontPicture(site.pages.get('index.md')!.text)
  for (const path of [light, dark]) copy(site.pictures.get(path)!, join('public', path))
  copy('console/icon.svg', 'public/icon.svg')
  write(join(SOURCE, 'site.json'), JSON.stringify({ base, parts: shownParts(site) }))
  write(join(SOURCE, '.vitepress/config.mjs'), "export { default } from '../../config.mjs'\n")
  write(join(SOURCE, '.vitepress/theme/index.mjs'), "export { default } from '../../../theme.mjs'\n")
  if (!existsSync(join(HOME, 'node_modules/vitepress'))) run('npm', 'ci', '--silent', '--no-audit', '--no-fund')
  run(join(HOME, 'node_modules/.bin/vitepress'), 'build', 'source', '--outDir', folder)
  // The texts that llms.txt links to are beside the pages.
  for (const [path, { text }] of site.pages) write(join(folder, path), text)
  write(join(folder, 'reference/schema.graphql'), schemaText())
  write(join(folder, 'llms.txt'), llmsText(site, base))
  write(join(folder, 'llms-full.txt'), llmsFullText(site))
  process.stdout.write(`${site.pages.size} pages in ${folder}\n`)
}

/** A page with its settings for VitePress. */
function shown(
  path: string,
  text: string,
  { site, repository }: { readonly site: Site; readonly repository: string | null },
): string {
  if (path === 'index.md') return frontPage(text, site, repository)
  return `---\n${JSON.stringify({ title: pageTitle(text), description: pageSummary(text) })}\n---\n\n${text}`
}

/** Titles and places for the lists of pages. */
function shownParts({ parts, pages }: Site): unknown {
  return parts.map(({ title, groups }) => ({
    title,
    groups: groups.map(group => ({
      title: group.title,
      pages: group.pages.map(source => {
        const path = sitePath(source)
        return { title: pageTitle(pages.get(path)!.text), path: `/${path.replace(/\.md$/, '')}` }
      }),
    })),
  }))
}

function write(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}

/** Copies a file of the repository into the source of the site. */
function copy(from: string, path: string): void {
  mkdirSync(dirname(join(SOURCE, path)), { recursive: true })
  copyFileSync(join(ROOT, from), join(SOURCE, path))
}

function run(program: string, ...words: string[]): void {
  execFileSync(program, words, { cwd: HOME, stdio: ['ignore', 'inherit', 'inherit'] })
}
