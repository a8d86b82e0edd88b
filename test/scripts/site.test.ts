/** The pages of the site, before VitePress turns them into HTML; `.ci/run` builds that. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apiPage } from '../../scripts/site/api.ts'
import { anchorsOf, llmsText, makeSite, sitePath, titleOf } from '../../scripts/site/pages.ts'
import { API_PAGE, partsOf } from '../../scripts/site/parts.ts'
import { JOB_OPERATIONS } from '../../src/api/jobs/operations.ts'
import { assertNone, files, read } from '../tidy/files.ts'

const site = makeSite({ files, read, api: apiPage() })

test('each page of the documentation is in one part of the site', () => {
  const placed = site.parts.flatMap(({ pages }) => pages)
  assert.equal(new Set(placed).size, placed.length)
  const pages = files.filter(path => /^docs\/(?!adr\/)[^/]*(?:\/[^/]+)?\.md$/.test(path) && path !== 'docs/README.md')
  assertNone(pages.filter(path => !placed.includes(path)))
  assertNone(placed.filter(path => path !== API_PAGE && !files.includes(path)))
})

test('a page that no part names is in the part of its folder', () => {
  const operate = partsOf([...files, 'docs/guides/quite-new.md']).find(({ title }) => title === 'Operate')!
  assert.equal(operate.pages.at(-1), 'docs/guides/quite-new.md')
})

test('no link of the site leads nowhere, to a heading either', () => {
  assertNone([...site.deadLinks])
})

test('links lead to the site of what lies elsewhere in the repository', () => {
  const home = site.pages.get('index.md')!.text
  assert.ok(home.includes('](./guides/gpus.md)'))
  assert.ok(home.includes('](./more/packages/worker.md)'))
  const browser = site.pages.get('guides/browser.md')!.text
  assert.ok(browser.includes('](../more/files/examples/clients/page-html.md)'))
  assert.match(site.pages.get('more/files/examples/clients/page-html.md')!.text, /<script/)
})

test('a dead link is found, and so is one to a heading that is not there', () => {
  const broken = '# Title\n\n[a](missing.md) [b](#title) [c](#nothing)\n\n```\n[d](in-code.md)\n```\n'
  const { deadLinks } = makeSite({
    files,
    read: path => (path === 'docs/start.md' ? broken : read(path)),
    api: apiPage(),
  })
  const found = deadLinks.filter(text => text.startsWith('docs/start.md: '))
  assert.deepEqual(found.sort(), [
    'docs/start.md: docs/start.md has no heading #nothing',
    'docs/start.md: missing.md leads nowhere',
  ])
})

test('headings have the anchors of GitHub', () => {
  const anchors = anchorsOf('# A `code` word\n\n## Twice, or\n\n## Twice, or\n\n## [Linked](x.md) *text*\n')
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

test('llms.txt names each page of the parts with its title', () => {
  const text = llmsText(site)
  for (const source of site.parts.flatMap(({ pages }) => pages)) {
    const path = sitePath(source)
    assert.ok(text.includes(`- [${titleOf(site.pages.get(path)!.text)}](/${path})`), source)
  }
  assert.deepEqual(
    text.split('\n').filter(line => line.startsWith('## ')),
    ['## Start', '## Do', '## Operate', '## Reference', '## Inside'],
  )
})
