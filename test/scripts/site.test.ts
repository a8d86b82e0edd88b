/** The pages of the site, before VitePress turns them into HTML; `.ci/run` builds that. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apiPage } from '../../scripts/site/api.ts'
import { frontPage } from '../../scripts/site/front-page.ts'
import {
  listAnchors,
  llmsFullText,
  llmsText,
  makeSite,
  pageSummary,
  pageTitle,
  sitePath,
} from '../../scripts/site/pages.ts'
import { listPages, partMistakes } from '../../scripts/site/parts.ts'
import { JOB_OPERATIONS } from '../../src/api/jobs/operations.ts'
import { assertNone, files, read } from '../tidy/files.ts'

const site = makeSite({ files, read, api: apiPage() })
const placed = site.parts.flatMap(listPages)

test('no link of the site leads nowhere, to a heading either, and each page is in one part', () => {
  assertNone([...site.mistakes])
})

test('a page that is in no part is found, and so is one that is gone', () => {
  const found = partMistakes([...files.filter(path => path !== 'docs/guides/gpus.md'), 'docs/guides/quite-new.md'])
  assert.deepEqual(found, [
    'docs/guides/quite-new.md is in no part of the site: name it in scripts/site/parts.ts',
    'scripts/site/parts.ts names docs/guides/gpus.md, which is not there',
  ])
})

test('each page has a title and says in a sentence what it is about', () => {
  const texts = placed.map(source => [source, site.pages.get(sitePath(source))!.text] as const)
  assertNone(texts.filter(([, text]) => pageTitle(text) === '').map(([source]) => source))
  const isSentence = (text: string) => /^\S.{10,}[.?!]$/.test(text)
  assertNone(
    texts
      .filter(([, text]) => !isSentence(pageSummary(text)))
      .map(([source, text]) => `${source}: ${pageSummary(text)}`),
  )
})

test('the front page begins with the picture, the command and the way to the first job and the repository', () => {
  const page = frontPage(site.pages.get('index.md')!.text, site, 'https://git.example/runyard')
  const [, settings] = /^---\n(.+)\n---\n/.exec(page)!
  const { hero, command } = JSON.parse(settings!)
  assert.match(hero.tagline, /Self-hosted serverless endpoints/)
  assert.equal(command, 'git clone https://git.example/runyard runyard && cd runyard\nnpm ci && npm start')
  for (const path of [hero.image.light, hero.image.dark]) assert.ok(site.pictures.has(path.slice(1)), path)
  const [start, repository, all] = hero.actions
  for (const { link } of [start, all]) assert.ok(site.pages.has(`${link.slice(1)}.md`), link)
  assert.equal(repository.link, 'https://git.example/runyard')
})

test('the front page has no link to a repository whose address is not given', () => {
  const page = frontPage(site.pages.get('index.md')!.text, site, null)
  assert.ok(page.includes('git clone <repository> runyard'))
  assert.ok(!page.includes('"Repository"'))
})

test('the front page shows the first call, and leads into each part', () => {
  const page = frontPage(site.pages.get('index.md')!.text, site, null)
  assert.ok(page.includes('npm ci && npm start'))
  assert.ok(page.includes('curl -sS http://127.0.0.1:8080/v2/hellonode/runsync'))
  const [, list = ''] = page.split('\n## Documentation\n')
  const matches = list.matchAll(/^- \[(\w+)\]\(\/([^)]+)\): /gm)
  const links = [...matches].map(([, title = '', path = '']) => ({ title, path }))
  assert.deepEqual(
    links.map(({ title }) => title),
    ['Start', 'Guides', 'Operate', 'Reference', 'Internals'],
  )
  for (const { path } of links) assert.ok(site.pages.has(path), path)
})

test('titles are names of things, which people search for', () => {
  const titles = placed.map(source => pageTitle(site.pages.get(sitePath(source))!.text))
  assertNone(titles.filter(title => /\?|^(?:What|How|Whether|Which|Who|When|Where|Why) /.test(title)))
})

test('both forms of a picture are on the site', () => {
  for (const theme of ['light', 'dark']) assert.ok(site.pictures.has(`pictures/console-home-${theme}.png`))
  assert.match(site.pages.get('guides/console.md')!.text, /\]\(\.\.\/pictures\/console-home-light\.png\)/)
})

test('links lead to the site of what lies elsewhere in the repository', () => {
  const home = site.pages.get('index.md')!.text
  assert.ok(home.includes('](./guides/standby.md)'))
  assert.ok(home.includes('](./more/packages/worker.md)'))
  assert.ok(site.pages.get('all.md')!.text.includes('](./guides/gpus.md)'))
  const browser = site.pages.get('guides/browser.md')!.text
  assert.ok(browser.includes('](../more/files/examples/clients/page-html.md)'))
  assert.match(site.pages.get('more/files/examples/clients/page-html.md')!.text, /<script/)
})

test('a dead link is found, and so is one to a heading that is not there', () => {
  const broken = '# Title\n\n[a](missing.md) [b](#title) [c](#nothing)\n\n```\n[d](in-code.md)\n```\n'
  const { mistakes } = makeSite({
    files,
    read: path => (path === 'docs/start.md' ? broken : read(path)),
    api: apiPage(),
  })
  const found = mistakes.filter(text => text.startsWith('docs/start.md: '))
  assert.deepEqual(found.sort(), [
    'docs/start.md: docs/start.md has no heading #nothing',
    'docs/start.md: missing.md leads nowhere',
  ])
})

test('headings have the anchors of GitHub', () => {
  const anchors = listAnchors('# A `code` word\n\n## Twice, or\n\n## Twice, or\n\n## [Linked](x.md) *text*\n')
  assert.deepEqual([...anchors], ['a-code-word', 'twice-or', 'twice-or-1', 'linked-text'])
})

test('the page of the API has every job operation with its parameters and statuses', () => {
  const page = apiPage()
  for (const { method, path } of JOB_OPERATIONS)
    assert.ok(page.includes(`### \`${method.toUpperCase()} ${path}\``), path)
  assert.match(page, /### `POST \/v2\/\{endpoint\}\/run`/)
  assert.match(page, /### `GET \/v2\/serverless`/)
  assert.match(page, /\| `Idempotency-Key` \| header \| no \| string \|/)
})

test('llms.txt names each page of the parts with its title, and each decision, below the path of the site', () => {
  const text = llmsText(site, '/docs/')
  for (const source of [...placed, ...files.filter(path => path.startsWith('docs/adr/'))]) {
    const path = sitePath(source)
    assert.ok(text.includes(`- [${pageTitle(site.pages.get(path)!.text)}](/docs/${path})`), source)
  }
  assert.deepEqual(
    text.split('\n').filter(line => line.startsWith('## ')),
    ['## Start', '## Guides', '## Operate', '## Reference', '## Internals', '## Optional'],
  )
})

test('llms-full.txt has the whole text of each page of the parts', () => {
  const text = llmsFullText(site)
  for (const source of placed) assert.ok(text.includes(site.pages.get(sitePath(source))!.text.trim()), source)
})
