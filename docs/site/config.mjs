// How VitePress shows the pages that scripts/site.ts has prepared in `source`.
import { readFileSync } from 'node:fs'

const sidebar = JSON.parse(readFileSync(new URL('source/sidebar.json', import.meta.url), 'utf8'))

/** The anchors of GitHub, so that a link means the same in both places. */
const slugify = heading =>
  heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-')

export default {
  title: 'Runyard',
  description: 'Self-hosted serverless endpoints for containers and GPUs',
  lang: 'en',
  cleanUrls: false,
  themeConfig: {
    sidebar,
    outline: [2, 3],
    search: { provider: 'local' },
    nav: sidebar.map(({ text, items }) => ({ text, link: items[0].link })),
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
    },
  },
}
