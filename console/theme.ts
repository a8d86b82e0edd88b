/** Light and dark: the choice of the system until somebody chooses. */
import { signal } from '@preact/signals'

/** A choice of the person; `system` follows `prefers-color-scheme`. */
export type Theme = 'system' | 'light' | 'dark'

const STORAGE_KEY = 'runyard.theme'
const dark = matchMedia('(prefers-color-scheme: dark)')

/** The theme that the person chose. */
export const theme = signal<Theme>((localStorage.getItem(STORAGE_KEY) as Theme | null) ?? 'system')
/** True if the page is dark now. */
export const isDark = signal(false)

/** Chooses a theme, for this browser. */
export function chooseTheme(chosen: Theme): void {
  theme.value = chosen
  localStorage.setItem(STORAGE_KEY, chosen)
  showTheme()
}

/** Shows the chosen theme. */
export function showTheme(): void {
  isDark.value = theme.value === 'dark' || (theme.value === 'system' && dark.matches)
  document.documentElement.dataset.theme = isDark.value ? 'dark' : 'light'
}

dark.addEventListener('change', showTheme)
