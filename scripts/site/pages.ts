/**
 * The pages of the site, from the files of the repository, with their places on the site and the links between them.
 */
import { basename, dirname, extname, join, relative } from 'node:path/posix'
import { API_PAGE, listPages, PARTS, type Part, partMistakes } from './parts.ts'

/** Sources of the pages. */
export interface SiteSources {
  /** All files of the repository, by their paths from the root. */
  readonly files: readonly string[]
  readonly read: (path: string) => string
  /** The page of the API. */
  readonly api: string
}

/** A page or a picture of the site. */
export interface SitePage {
  /** Path of its source from the root. */
  readonly source: string
  readonly text: string
}

/** A finished site, before it is turned into HTML. */
export interface Site {
  readonly parts: readonly Part[]
  /** Pages by their paths on the site. */
  readonly pages: ReadonlyMap<string, SitePage>
  /** Paths of the pictures of pages in the repository, by their paths on the site. */
  readonly pictures: ReadonlyMap<string, string>
  /** Broken links, and pages without a part, as sentences. */
  readonly mistakes: readonly string[]
}

/** The front page. */
const HOME = 'README.md'
/** Folder of the records of decisions, which are on the site but in no part. */
const DECISIONS = 'docs/adr/'
const PICTURES = new Set(['.png', '.svg'])
/** Name of a picture that has another form for the dark theme. */
const LIGHT = /-light(\.(?:png|svg))$/
const LINK = /\]\(([^\s()]+)\)/g

/** Path of a page, picture or other file of the repository on the site. */
export function sitePath(source: string): string {
  if (source === HOME) return 'index.md'
  if (source === 'docs/README.md') return 'all.md'
  if (source.startsWith('docs/')) return source.slice('docs/'.length)
  if (source.endsWith('.md')) return `more/${source.toLowerCase().replace(/\/readme\.md$/, '.md')}`
  // VitePress takes `page.html.md` for `page.html`.
  return `more/files/${source.replaceAll('.', '-')}.md`
}

/** Makes all pages: those of the parts, and those that they link to. */
export function makeSite({ files, read, api }: SiteSources): Site {
  const paths = new Set(files)
  const pages = new Map<string, SitePage>()
  const pictures = new Map<string, string>()
  const mistakes = partMistakes(files)
  const anchors: { readonly from: string; readonly target: string; readonly anchor: string }[] = []
  const waiting = [HOME, ...PARTS.flatMap(listPages), ...files.filter(path => path.startsWith(DECISIONS))]
  const follow = (from: string, link: string): string => {
    if (/^[a-z][a-z0-9+.-]*:/i.test(link)) return link
    const [path = '', anchor] = link.split('#')
    const target = path === '' ? from : findPageFile(join(dirname(from), decodeURI(path)), paths)
    if (target === undefined || !(paths.has(target) || target === API_PAGE)) {
      mistakes.push(`${from}: ${link} leads nowhere`)
      return link
    }
    if (anchor !== undefined) anchors.push({ from, target, anchor })
    const place = relative(dirname(sitePath(from)), sitePath(target))
    if (PICTURES.has(extname(target))) pictures.set(sitePath(target), target)
    else waiting.push(target)
    return `${place.startsWith('.') ? place : `./${place}`}${anchor === undefined ? '' : `#${anchor}`}`
  }
  for (let source = waiting.shift(); source !== undefined; source = waiting.shift()) {
    const place = sitePath(source)
    if (pages.has(place) || !(paths.has(source) || source === API_PAGE)) continue
    const from = source
    const text = source === API_PAGE ? api : read(source)
    const shown = source.endsWith('.md') ? withLinks(text, link => follow(from, link)) : asCode(source, text)
    pages.set(place, { source, text: shown })
  }
  for (const { from, target, anchor } of anchors) {
    const page = pages.get(sitePath(target))
    if (target.endsWith('.md') && page !== undefined && !listAnchors(page.text).has(anchor))
      mistakes.push(`${from}: ${target} has no heading #${anchor}`)
  }
  return { parts: PARTS, pages, pictures, mistakes }
}

/** File of a path; for a folder, the page in it. */
function findPageFile(path: string, paths: ReadonlySet<string>): string | undefined {
  if (paths.has(path)) return path
  const folder = path.replace(/\/$/, '')
  if (paths.has(`${folder}/README.md`)) return `${folder}/README.md`
  return path === API_PAGE ? path : undefined
}

/**
 * Rewrites the links of a page outside of its fenced blocks. A picture with a form for each theme becomes its light
 * form; the site shows the dark one, which has to be beside it, in its place.
 */
function withLinks(text: string, follow: (link: string) => string): string {
  const plain = text
    .replace(/<!--[\s\S]*?-->\n?/g, '')
    .replace(/<picture>[\s\S]*?<img alt="([^"]*)" src="([^"]*)"[\s\S]*?<\/picture>/g, '![$1]($2)')
  return outsideFences(plain, line =>
    line.replace(LINK, (_, link: string) => {
      if (LIGHT.test(link)) follow(link.replace(LIGHT, '-dark$1'))
      return `](${follow(link)})`
    }),
  )
}

function outsideFences(text: string, change: (line: string) => string): string {
  let fence = ''
  const lines = text.split('\n').map(line => {
    const mark = /^\s*(?:[-*>]\s+)?(`{3,}|~{3,})/.exec(line)?.[1]
    if (fence !== '') {
      if (mark?.startsWith(fence)) fence = ''
      return line
    }
    if (mark !== undefined) {
      fence = mark
      return line
    }
    return change(line)
  })
  return lines.join('\n')
}

function asCode(path: string, text: string): string {
  const language = extname(path).slice(1).replace('mjs', 'js')
  return `# ${basename(path)}\n\n\`${path}\`\n\n\`\`\`\`${language}\n${text.trimEnd()}\n\`\`\`\`\n`
}

/** The anchors of the headings of a page, as GitHub makes them. */
export function listAnchors(text: string): ReadonlySet<string> {
  const anchors = new Set<string>()
  outsideFences(text, line => {
    const heading = /^#{1,6} (.+)$/.exec(line)?.[1]
    if (heading !== undefined) {
      const anchor = headingAnchor(heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll('`', ''))
      for (let count = 0; ; count += 1) {
        const numbered = count === 0 ? anchor : `${anchor}-${count}`
        if (anchors.has(numbered)) continue
        anchors.add(numbered)
        break
      }
    }
    return line
  })
  return anchors
}

function headingAnchor(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-')
}

/** The title of a page. */
export function pageTitle(text: string): string {
  return /^# (.+)$/m.exec(text)?.[1]?.replaceAll('`', '') ?? ''
}

/** Summary of a page: its first sentence; empty if it begins with something else. */
export function pageSummary(text: string): string {
  const paragraphs = text
    .replace(/^(`{3,})[^`]*?^\1$/gm, '')
    .split(/\n{2,}/)
    .slice(1)
  const prose =
    paragraphs.find(paragraph => /^[\p{L}`*[]/u.test(paragraph) && !/^(?:\*|-|\d+\.) /.test(paragraph)) ?? ''
  const words = prose
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/^\*\*Decision\.\*\*/, '')
    .replaceAll('**', '')
    .replace(/\s+/g, ' ')
    .trim()
  return /^.*?[.!?](?= |$)/.exec(words)?.[0] ?? words.replace(/:$/, '.')
}

/** Description of Runyard in a sentence. */
export const SUMMARY =
  'Self-hosted serverless endpoints for containers and GPUs, compatible with RunPod Serverless clients and workers.'

/**
 * The list of pages for language models (llms.txt): each with its title and its first sentence.
 * @param base path of the site
 */
export function llmsText({ parts, pages }: Site, base: string): string {
  const entry = (source: string) => {
    const { text } = pages.get(sitePath(source))!
    const summary = pageSummary(text)
    return `- [${pageTitle(text)}](${base}${sitePath(source)})${summary === '' ? '' : `: ${summary}`}\n`
  }
  const ofParts = parts.map(part => `## ${part.title}\n\n${listPages(part).map(entry).join('')}`)
  const decisions = [...pages.values()].map(({ source }) => source).filter(source => source.startsWith(DECISIONS))
  const optional = `## Optional\n\nRecords of decisions. All pages of the parts in one file: ${base}llms-full.txt\n\n`
  return `# Runyard\n\n> ${SUMMARY}\n\n${ofParts.join('\n')}\n${optional}${decisions.map(entry).join('')}`
}

/** All pages of the parts in one text (llms-full.txt). */
export function llmsFullText({ parts, pages }: Site): string {
  const texts = parts.flatMap(listPages).map(source => {
    const path = sitePath(source)
    return `<!-- ${path} -->\n\n${pages.get(path)!.text.trim()}\n`
  })
  return `> ${SUMMARY}\n\n${texts.join('\n')}`
}
