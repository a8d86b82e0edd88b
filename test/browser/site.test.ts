/** The built site of the documentation, below a path of a server of static files. */
import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join, relative } from 'node:path'
import { before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { patient } from '../support/patience.ts'
import { browserSkip, openBrowser } from '../wire/support/browser.ts'
import type { Browser, Page } from '../wire/support/chromium.ts'
import { atEnd } from '../wire/support/cleanup.ts'

/** As `.ci/run` builds it. */
const BASE = '/docs/'
const REPOSITORY = 'https://git.example/runyard'
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
}
const folder = process.env.RUNYARD_TEST_SITE ?? ''
// `.ci/run` builds it beside the first tests.
while (existsSync(`${folder}.unfinished`)) await sleep(200)
const skip = missing()

function missing(): string | false {
  if (folder !== '' && existsSync(join(folder, 'index.html'))) return browserSkip
  const problem = 'RUNYARD_TEST_SITE names no folder of a site that scripts/site.ts --base /docs/ has built'
  if (process.env.RUNYARD_NO_SKIP === '1') throw new Error(problem)
  return problem
}

/** File at a path of the server; undefined if it does not exist. */
function fileAt(path: string): string | undefined {
  if (!path.startsWith(BASE)) return undefined
  const file = join(folder, decodeURI(path.slice(BASE.length)))
  if (!existsSync(file)) return undefined
  return statSync(file).isDirectory() ? fileAt(`${path.replace(/\/$/, '')}/index.html`) : file
}

async function startFileServer(): Promise<string> {
  const server = createServer((request, response) => {
    const file = fileAt(new URL(request.url!, 'http://site').pathname)
    const shown = file ?? join(folder, '404.html')
    response.writeHead(file === undefined ? 404 : 200, {
      'content-type': TYPES[extname(shown)] ?? 'application/octet-stream',
    })
    response.end(readFileSync(shown))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  atEnd(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

describe('the site of the documentation', { skip, timeout: patient(120_000) }, () => {
  let browser: Browser
  let origin: string
  before(async () => {
    origin = await startFileServer()
    browser = await openBrowser()
  })

  /** A page on which an error of a script, a missing file or a request to anywhere else is noted. */
  async function open(path: string, theme: 'light' | 'dark' = 'light', width = 1280) {
    const context = await browser.newContext({ colorScheme: theme, viewport: { width, height: 800 } })
    const page = await context.newPage()
    page.setDefaultTimeout(patient(30_000))
    const problems: string[] = []
    page.on('pageerror', error => problems.push(error.message))
    page.on('request', request => {
      if (!request.url().startsWith(`${origin}${BASE}`) && !request.url().startsWith('data:'))
        problems.push(request.url())
    })
    page.on('response', response => {
      if (response.status() >= 400) problems.push(`${response.status()} ${response.url()}`)
    })
    await page.goto(`${origin}${BASE}${path}`)
    // Until its scripts have taken the page over, keys and buttons do nothing.
    await page.waitForFunction(() => '__vue_app__' in document.querySelector('#app')!)
    return { page, problems }
  }

  const isShown = (page: Page, theme: string) => page.locator(`.vp-doc img.only-${theme}`).first().isVisible()

  test('links between its pages lead to files, below the path too', () => {
    const pages = globSync(join(folder, '**/*.html'))
    assert.ok(pages.length > 100)
    const dead = pages.flatMap(file => {
      const at = `http://site${BASE}${relative(folder, file)}`
      const links = [...readFileSync(file, 'utf8').matchAll(/ (?:href|src)="([^"]+)"/g)].map(
        ([, link]) => new URL(link!, at),
      )
      const own = links.filter(({ origin }) => origin === 'http://site')
      return own.filter(({ pathname }) => fileAt(pathname) === undefined).map(({ pathname }) => `${at}: ${pathname}`)
    })
    assert.deepEqual(dead, [])
  })

  test('pages are as wide as the window, and load nothing from elsewhere', async () => {
    for (const width of [1280, 390])
      for (const path of ['', 'guides/why.html', 'reference/api.html']) {
        const { page, problems } = await open(path, 'light', width)
        assert.deepEqual(problems, [])
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
        assert.ok(wide <= 0, `${path} is ${wide} pixels wider than ${width}`)
        assert.ok(((await page.locator('meta[name=description]').getAttribute('content')) ?? '').length > 10)
        await page.context().close()
      }
  })

  test('a page shows the pictures of its theme', async () => {
    for (const [theme, other] of [
      ['light', 'dark'],
      ['dark', 'light'],
    ] as const) {
      const { page, problems } = await open('guides/console.html', theme)
      assert.deepEqual([await isShown(page, theme), await isShown(page, other)], [true, false])
      assert.deepEqual(problems, [])
      await page.context().close()
    }
  })

  test('the front page shows picture, command and the link to the repository without scrolling', async () => {
    for (const width of [1280, 390]) {
      const { page, problems } = await open('', 'light', width)
      for (const shown of [
        page.locator('.front-command'),
        page.locator('.VPHero .image-src:visible'),
        page.locator(`.VPHero a[href="${REPOSITORY}"]`),
      ]) {
        const box = (await shown.boundingBox())!
        assert.ok(box.y + box.height <= 800, `ends at ${box.y + box.height} in a window of ${width}`)
        assert.ok(box.x >= 0 && box.x + box.width <= width)
      }
      assert.deepEqual(problems, [])
      await page.context().close()
    }
  })

  test('a block of code scrolls inside itself', async () => {
    for (const width of [1280, 390])
      for (const path of ['', 'start.html', 'guides/kubernetes.html']) {
        const { page } = await open(path, 'light', width)
        const stray = await page.evaluate(() =>
          [...document.querySelectorAll('pre')]
            .filter(block => {
              const { left, right } = block.getBoundingClientRect()
              const scrolls = block.scrollWidth <= block.clientWidth || getComputedStyle(block).overflowX === 'auto'
              return left < 0 || right > innerWidth || !scrolls
            })
            .map(block => block.textContent),
        )
        assert.deepEqual(stray, [], `${path} in a window of ${width}`)
        await page.context().close()
      }
  })

  test('the meaning of a setting is as wide as the page', async () => {
    for (const width of [1280, 390]) {
      const { page } = await open('reference/settings.html', 'light', width)
      const meaning = (await page.locator('table.settings td:nth-child(4)').first().boundingBox())!
      const column = (await page.locator('.vp-doc > div > p').first().boundingBox())!
      assert.ok(meaning.width > 0.8 * column.width, `${meaning.width} of ${column.width}`)
      assert.ok(meaning.x + meaning.width <= width)
      await page.context().close()
    }
  })

  test('the search finds titles first, then references and guides, and leads to them', async () => {
    const { page, problems } = await open('')
    await page.locator('#local-search button').click()
    const first = page.locator('.results .result').first()
    const found = async (words: string, title: RegExp) => {
      await page.locator('.search-input').fill(words)
      await first.filter({ hasText: title }).waitFor()
    }
    await found('timeout', /Limits/)
    await found('autoscaling', /Autoscaling/)
    await found('keyboard shortcuts', /Web console/)
    await found('backup', /Backup and restore/)
    await first.click()
    await page.waitForURL(/\/docs\/guides\/backup\.html/)
    assert.deepEqual(problems, [])
  })

  test('a page that is not there says so, with the way to the front page', async () => {
    const { page } = await open('guides/nothing.html')
    await page.getByText('No such page').waitFor()
    await page.locator('.NotFound').getByRole('link').click()
    await page.waitForURL(`${origin}${BASE}`)
  })
})
