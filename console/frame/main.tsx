/** The console: one page over the public API. */
import { render } from 'preact'
import { resumeSession } from '../client/session.ts'
import { listenToKeys } from '../keyboard.ts'
import { followLinks } from '../router.ts'
import { showTheme } from '../theme.ts'
import { Console } from './console.tsx'
import '../styles/main.css'

showTheme()
followLinks()
listenToKeys()
render(<Console />, document.getElementById('app')!)
void resumeSession()
