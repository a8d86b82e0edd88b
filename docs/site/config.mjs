// How VitePress shows the pages that scripts/site.ts has prepared in `source`.
import { readFileSync } from 'node:fs'

const { base, parts } = JSON.parse(readFileSync(new URL('source/site.json', import.meta.url), 'utf8'))

/** The anchors of GitHub, so that a link means the same in both places. */
const slugify = heading =>
  heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-')

const itemsOf = pages => pages.map(({ title, path }) => ({ text: title, link: path }))

export default {
  base,
  title: 'Runyard',
  description: 'Self-hosted serverless endpoints for containers and GPUs',
  lang: 'en',
  head: [['link', { rel: 'icon', type: 'image/svg+xml', href: `${base}icon.svg` }]],
  cleanUrls: false,
  themeConfig: {
    logo: '/icon.svg',
    sidebar: parts.map(({ title, groups }) => ({
      text: title,
      collapsed: title !== 'Start',
      items: groups.flatMap(group =>
        group.title === null ? itemsOf(group.pages) : [{ text: group.title, items: itemsOf(group.pages) }],
      ),
    })),
    nav: parts.map(({ title, groups }) => ({ text: title, link: groups[0].pages[0].path })),
    outline: [2, 3],
    notFound: {
      title: 'No such page',
      quote: 'It may have moved: search for it, or begin at the front page.',
      linkText: 'Front page',
    },
    search: {
      provider: 'local',
      options: {
        miniSearch: {
          searchOptions: {
            // A title counts more than the text below it; a similar word counts little.
            boost: { title: 8, titles: 3, text: 1 },
            weights: { fuzzy: 0.1, prefix: 0.6 },
            // Reference, then guides, then what is inside, then decisions and files. VitePress sends the text of this
            // function to the browser, so it uses nothing from outside.
            boostDocument: id => {
              if (/\/(?:adr|more\/files)\/|\/changelog|\/all\.html|\/benchmarks/.test(id)) return 0.3
              if (/\/(?:internals|more)\//.test(id)) return 0.6
              return /\/reference\/(?!api)/.test(id) ? 2.5 : /\/guides\/|\/start\.html/.test(id) ? 1.5 : 1
            },
          },
        },
      },
    },
  },
  markdown: {
    // Placeholders such as <endpoint> are text.
    html: false,
    linkify: false,
    anchor: { slugify },
    config: markdown => {
      // The pages are no templates: braces in them are text, too.
      const literal = text => text.replaceAll('{{', '&#123;&#123;')
      for (const rule of ['text', 'code_inline']) {
        const shown = markdown.renderer.rules[rule]
        markdown.renderer.rules[rule] = (...given) => literal(shown(...given))
      }
      // Settings are shown one below the other: a table of four columns leaves no room for their meaning.
      const table = markdown.renderer.rules.table_open
      markdown.renderer.rules.table_open = (tokens, at, ...rest) => {
        const heads = tokens.slice(at, at + 10).filter(({ type }) => type === 'inline')
        const isSettings = heads[0]?.content === 'option' && heads[1]?.content === 'variable'
        return isSettings ? '<table class="settings" tabindex="0">\n' : table(tokens, at, ...rest)
      }
      // Nothing here colors the queries of Prometheus.
      const fence = markdown.renderer.rules.fence
      markdown.renderer.rules.fence = (tokens, at, ...rest) => {
        if (tokens[at].info === 'promql') tokens[at].info = 'txt'
        return fence(tokens, at, ...rest)
      }
      // A picture with a form for each theme: the styles show one of them.
      const image = markdown.renderer.rules.image
      markdown.renderer.rules.image = (tokens, at, ...rest) => {
        const token = tokens[at]
        const light = token.attrGet('src')
        if (!/-light\.\w+$/.test(light)) return image(tokens, at, ...rest)
        const show = (source, theme) => {
          token.attrSet('src', source)
          token.attrSet('class', `only-${theme}`)
          return image(tokens, at, ...rest)
        }
        return show(light, 'light') + show(light.replace(/-light(?=\.\w+$)/, '-dark'), 'dark')
      }
    },
  },
}
