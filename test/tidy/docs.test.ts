import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { findBrokenLinks, findChangelogMistakes, findTitleMistakes } from './docs.ts'
import { assertClean, assertNone, files, readIfThere, root } from './files.ts'

const pages = files.filter(path => path.endsWith('.md'))

test('every page has one title', () => {
  assertClean(pages, page => findTitleMistakes(page))
})

test('every relative link leads to a file', () => {
  assertClean(pages, (page, path) => findBrokenLinks(page, path, target => existsSync(join(root, target))))
})

test('the changelog keeps the form of Keep a Changelog', { skip: !files.includes('CHANGELOG.md') }, () => {
  const page = readIfThere('CHANGELOG.md') ?? ''
  assertNone(findChangelogMistakes(page).map(({ line, what }) => `CHANGELOG.md:${line} ${what}`))
})

test('every test that the page of faults names is there', () => {
  const page = readIfThere('docs/internals/faults.md') ?? ''
  const named = page.split('|').flatMap(cell => cell.match(/`test\/[\w/.-]+`: "[^"]+"/g) ?? [])
  assert.ok(named.length >= 20, String(named.length))
  const missing = named.filter(text => {
    const [, path = '', name = ''] = /^`(.+)`: "(.+)"$/.exec(text) ?? []
    return !(readIfThere(path) ?? '').includes(`test('${name}`)
  })
  assertNone(missing)
})

test('the way into the code stays short, and the paths that it names exist', () => {
  const size = Buffer.byteLength(readIfThere('ARCHITECTURE.md') ?? '')
  assert.ok(size < 20_000, `ARCHITECTURE.md has ${size} bytes: pages of docs/internals have room for details`)
  const pages = ['ARCHITECTURE.md', ...['places', 'terms', 'walls'].map(name => `docs/internals/${name}.md`)]
  const named = pages.flatMap(page =>
    [...(readIfThere(page) ?? '').matchAll(/`((?:src|sim|bench|test|scripts|console|packages)\/[\w./-]+)`/g)].map(
      ([, path]) => [page, path!] as const,
    ),
  )
  assert.ok(named.length > 100, String(named.length))
  assertNone(named.filter(([, path]) => !existsSync(join(root, path))).map(([page, path]) => `${page}: ${path}`))
})

test('a page without a title and a page with two are found', () => {
  assert.equal(findTitleMistakes('## Part\n').length, 1)
  assert.deepEqual(
    findTitleMistakes('# One\n\n# Two\n').map(({ line }) => line),
    [3],
  )
})

test('headings in fenced code and in comments are no titles', () => {
  assert.deepEqual(findTitleMistakes('# One\n\n```sh\n# not a title\n```\n\n<!--\n# nor this\n-->\n'), [])
  assert.deepEqual(findTitleMistakes('# One\n\n````md\n```\n# no\n```\n# no\n````\n\n- ~~~\n# no\n  ~~~\n'), [])
})

/** Links of `page.md` in the guides. Only `other.md` beside it, `docs/a (b).md` and `README.md` exist. */
const links: [page: string, broken: string[]][] = [
  ['[a](other.md) [b](./other.md#part) ![c](../../README.md "title")', []],
  ['[a](missing.md)', ['missing.md']],
  ['text\n![a](../missing.png)', ['../missing.png']],
  ['[a](<../a (b).md>) [b](../a%20(b).md) [c](/README.md)', []],
  ['[a](https://example.org/x) [b](mailto:a@example.org) [c](#part)', []],
  ['[a]: other.md\n[b]: missing.md', ['missing.md']],
  ['`[a](missing.md)`\n\n```\n[a](missing.md)\n```', []],
]

for (const [page, broken] of links) {
  test(`the links of ${JSON.stringify(page)} are followed`, () => {
    const there = ['docs/guides/other.md', 'docs/a (b).md', 'README.md']
    const found = findBrokenLinks(page, 'docs/guides/page.md', path => there.includes(path))
    assert.deepEqual(
      found.map(({ what }) => what),
      broken.map(link => `the link ${link} leads nowhere`),
    )
  })
}

test('a changelog has versions, with dates, and kinds of changes', () => {
  const good = '# Changelog\n\n## [Unreleased]\n\n### Added\n\n- a\n\n## [1.0.0] - 2026-01-31\n\n### Fixed\n\n- b\n'
  assert.deepEqual(findChangelogMistakes(good), [])
  assert.equal(findChangelogMistakes('# Changelog\n').length, 1)
  assert.equal(findChangelogMistakes('## [Unreleased]\n\n## [1.0.0]\n\n### New\n').length, 2)
})
