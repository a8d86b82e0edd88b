/**
 * The pictures of the README and the guides, made from a real server in both themes. With RUNYARD_TEST_PICTURES=write
 * they are written again; else each is compared with the one in the documentation, coarsely: numbers, times and ids
 * may differ, the layout may not.
 */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { patient } from '../support/patience.ts'
import { browserSkip, openBrowser } from '../wire/support/browser.ts'
import type { Browser, Page } from '../wire/support/chromium.ts'
import { ask } from '../wire/support/client.ts'
import { root, type Server } from '../wire/support/server.ts'
import { Visitor } from './support/console.ts'
import { compacted, type Difference, isSamePage, pictureDifference } from './support/picture.ts'
import { type Showcase, startShowcase } from './support/showcase.ts'

const FOLDER = join(root, 'docs/pictures')
const MAX_BYTES = 150_000
const HOW = 'write them anew with RUNYARD_TEST_PICTURES=write, look at them, and keep them with the change'
const isWriting = process.env.RUNYARD_TEST_PICTURES === 'write'

interface Picture {
  readonly name: string
  readonly path: (showcase: Showcase) => string
  /** Waits until the subject of the picture is visible. */
  readonly isThere: (page: Page) => Promise<unknown>
}

const PICTURES: readonly Picture[] = [
  {
    name: 'home',
    path: () => '/',
    isThere: async page => {
      await page.getByRole('button', { name: /^Roll back to release/ }).waitFor()
      await page.getByRole('button', { name: /^Allow \d+ workers?$/ }).waitFor()
    },
  },
  {
    name: 'job',
    path: ({ failedJob }) => `/endpoints/whisperlarge/requests?job=${failedJob}`,
    isThere: async page => {
      const drawer = page.getByRole('dialog')
      await drawer.getByText('decodeFrame').first().waitFor()
      await drawer.getByText('reading calls/1.flac').waitFor()
      await drawer.getByRole('heading', { name: 'Error' }).evaluate(heading => heading.scrollIntoView())
    },
  },
  {
    name: 'metrics',
    path: () => '/endpoints/whisperlarge/metrics?range=1h',
    isThere: page => page.locator('main canvas').nth(2).waitFor(),
  },
  {
    name: 'logs',
    path: () => '/endpoints/whisperlarge/logs',
    isThere: page => page.getByText('reading live/harbour.wav').waitFor(),
  },
  {
    name: 'machine',
    path: () => '/machine',
    isThere: page => page.getByText('NVIDIA L40S').nth(2).waitFor(),
  },
]

describe('the pictures of the documentation', { skip: browserSkip, timeout: patient(240_000) }, () => {
  let browser: Browser
  let showcase: Showcase
  before(async () => {
    showcase = await startShowcase()
    browser = await openBrowser()
    mkdirSync(FOLDER, { recursive: true })
  })

  for (const theme of ['light', 'dark'] as const)
    test(`show the console as it is now, ${theme}`, async () => {
      const visitor = await Visitor.at(browser, showcase.server, { width: 1280, height: 800, theme })
      await hideMachine(visitor, showcase.server)
      await visitor.signIn(showcase.server.apiKey)
      const blank = await (await browser.newContext()).newPage()
      const old: string[] = []
      for (const { name, path, isThere } of PICTURES) {
        await visitor.open(path(showcase))
        await isThere(visitor.page)
        const made = await takePicture(visitor.page, name)
        const file = `console-${name}-${theme}.png`
        if (isWriting) writeFileSync(join(FOLDER, file), await kept(blank, made))
        else old.push(...(await complaints(blank, file, made)))
      }
      visitor.assertClean()
      assert.equal(old.length, 0, `${old.join('\n')}\nPictures in docs/pictures are old: ${HOW}`)
    })

  test('a page with a moved side bar, without its rows or in the other theme is another picture', async () => {
    const visitor = await Visitor.at(browser, showcase.server, { width: 1280, height: 800 })
    await hideMachine(visitor, showcase.server)
    await visitor.signIn(showcase.server.apiKey, '/')
    const blank = await (await browser.newContext()).newPage()
    const home = PICTURES[0]!
    await home.isThere(visitor.page)
    const asIs = await takePicture(visitor.page, home.name)
    const changes: Readonly<Record<string, () => unknown>> = {
      'a moved side bar': () => (document.querySelector<HTMLElement>('.frame')!.style.direction = 'rtl'),
      'an empty list': () => document.querySelector('ul.attention')!.replaceChildren(),
      'no figures': () => document.querySelector('.figures')!.remove(),
      'another theme': () => document.documentElement.setAttribute('data-theme', 'dark'),
    }
    for (const [what, change] of Object.entries(changes)) {
      await visitor.open('/')
      await home.isThere(visitor.page)
      await visitor.page.evaluate(change)
      const changed = await pictureDifference(blank, asIs, await visitor.page.screenshot())
      assert.equal(isSamePage(changed), false, `${what}: ${said(changed)}`)
    }
  })
})

/** Hides values that differ between machines: sizes, and the findings of doctor. */
async function hideMachine({ page }: Visitor, server: Server): Promise<void> {
  const findings = [
    { check: 'data directory', state: 'ok', message: 'writable, with 812 GB free', action: null },
    { check: 'open files', state: 'ok', message: 'a process may open 1048576', action: null },
    { check: 'GPUs', state: 'ok', message: '3 x NVIDIA L40S', action: null },
  ]
  await page.route('**/v2/machine/diagnosis', route =>
    route.fulfill({ json: { at: new Date().toISOString(), findings } }),
  )
  await page.route('**/v2/machine', async route => {
    const { json: machine } = await ask(server, '/v2/machine')
    await route.fulfill({
      json: {
        ...machine,
        vcpus: { ...machine.vcpus, total: 32 },
        memoryMb: { ...machine.memoryMb, total: 262_144, used: 71_200 },
        disk: { totalBytes: 1.9e12, availableBytes: 8.12e11 },
        suspending: { lack: null },
      },
    })
  })
}

/** A picture of the page, on which nothing is of this machine. */
async function takePicture(page: Page, name: string): Promise<Buffer> {
  await page.waitForFunction(() => document.querySelector('.loading') === null)
  await page.evaluate(() => document.fonts.ready)
  const text = await page.locator('body').innerText()
  for (const own of [root, tmpdir()]) assert.equal(text.includes(own), false, `the picture ${name} shows ${own}`)
  return page.screenshot({ animations: 'disabled' })
}

async function kept(blank: Page, made: Buffer): Promise<Buffer> {
  const small = await compacted(blank, made)
  assert.ok(small.length < MAX_BYTES, `a picture has ${small.length} bytes`)
  return small
}

async function complaints(blank: Page, file: string, made: Buffer): Promise<string[]> {
  const path = join(FOLDER, file)
  if (!existsSync(path)) return [`${file} is missing`]
  const difference = await pictureDifference(blank, readFileSync(path), made)
  return isSamePage(difference) ? [] : [`${file} shows another page: ${said(difference)}`]
}

function said({ mean, largest, changed }: Difference): string {
  return `cells differ by ${mean.toFixed(2)} on average, by ${largest.toFixed(0)} at most, and ${changed} of them clearly`
}
