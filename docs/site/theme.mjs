// The theme of VitePress with the styles of these pages. Its letters come with it; nothing is fetched from elsewhere.
import theme from 'vitepress/theme'
import './theme.css'

export default theme
