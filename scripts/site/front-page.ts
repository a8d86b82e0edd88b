/** The front page of the site: the README behind a few words and the way into each part. */

import { type Site, SUMMARY, sitePath, titleOf } from './pages.ts'
import { pagesOf } from './parts.ts'

/** @param text the README, as a page of the site */
export function frontPage(text: string, { parts }: Site): string {
  const linkTo = (source: string) => `/${sitePath(source).replace(/\.md$/, '')}`
  const settings = {
    layout: 'home',
    title: titleOf(text),
    titleTemplate: ':title',
    description: SUMMARY,
    hero: {
      name: titleOf(text),
      tagline: SUMMARY,
      actions: [
        { text: 'The first job', link: linkTo('docs/start.md') },
        { theme: 'alt', text: 'All pages', link: linkTo('docs/README.md') },
      ],
    },
    features: parts.map(part => ({ title: part.title, details: part.about, link: linkTo(pagesOf(part)[0]!) })),
  }
  const body = text.replace(/^# .+\n/, '')
  return `---\n${JSON.stringify(settings)}\n---\n\n${body}`
}
