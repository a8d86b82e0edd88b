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

const itemsOf = pages => pages.map(({ label, path }) => ({ text: label, link: path }))

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
            // Who searches for a word wants the guide before the decision, and the page before the list of changes.
            boostDocument: id =>
              /\/(?:adr|more\/files)\/|\/changelog|\/all\.html/.test(id) ? 0.3 : /\/guides\//.test(id) ? 1.5 : 1,
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
      // Nothing here colours the queries of Prometheus.
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
