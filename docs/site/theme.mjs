// The theme of VitePress with the styles of these pages and the command of the front page.
// Its letters come with it; nothing is fetched from elsewhere.
import { useData } from 'vitepress'
import theme from 'vitepress/theme'
import { h } from 'vue'
import './theme.css'

/** The command that starts a server, above the links of the front page. */
const Command = () => {
  const { command } = useData().frontmatter.value
  return command === undefined ? null : h('pre', { class: 'front-command', tabindex: 0 }, h('code', command))
}

export default {
  ...theme,
  Layout: () => h(theme.Layout, null, { 'home-hero-info-after': () => h(Command) }),
}
