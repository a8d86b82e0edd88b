/**
 * Makes the front page of the site from the README: picture, command and links first, then the text, then the parts.
 */

import { pageTitle, type Site, SUMMARY, sitePath } from './pages.ts'
import { listPages } from './parts.ts'

/** Picture of the first screen, in both themes; paths of the site. */
export interface FrontPicture {
  readonly light: string
  readonly dark: string
  readonly alt: string
}

const PICTURE = /!\[([^\]]*)\]\((\.\/[^)]+-light\.png)\)\n+/
const COMMAND = /```sh\n([^`]+)\n```\n/

/**
 * Makes the text of the front page. The first picture and the first command of the README move to the top of the page.
 * @param text README as a page of the site
 * @param repository address that is cloned and linked to; null where none is given
 */
export function frontPage(text: string, { parts }: Site, repository: string | null): string {
  const linkTo = (source: string) => `/${sitePath(source).replace(/\.md$/, '')}`
  const { light, dark, alt } = frontPicture(text)
  const settings = {
    layout: 'home',
    title: pageTitle(text),
    titleTemplate: ':title',
    description: SUMMARY,
    command: withRepository(COMMAND.exec(text)?.[1] ?? '', repository),
    hero: {
      name: pageTitle(text),
      tagline: SUMMARY,
      image: { light: `/${light}`, dark: `/${dark}`, alt },
      actions: [
        { text: 'Quickstart', link: linkTo('docs/start.md') },
        ...(repository === null ? [] : [{ theme: 'alt', text: 'Repository', link: repository }]),
        { theme: 'alt', text: 'All pages', link: linkTo('docs/README.md') },
      ],
    },
  }
  const body = withRepository(text.replace(/^# .+\n/, '').replace(PICTURE, ''), repository)
  const list = parts.map(part => `- [${part.title}](${linkTo(listPages(part)[0]!)}.md): ${part.about}\n`).join('')
  return `---\n${JSON.stringify(settings)}\n---\n\n${body}\n## Documentation\n\n${list}`
}

/** Finds the first picture of the README in both themes. */
export function frontPicture(text: string): FrontPicture {
  const [, alt = '', path = ''] = PICTURE.exec(text) ?? []
  const light = path.replace('./', '')
  return { light, dark: light.replace('-light.', '-dark.'), alt }
}

function withRepository(text: string, repository: string | null): string {
  return repository === null ? text : text.replaceAll('<repository>', repository)
}
