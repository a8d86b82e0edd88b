/** The console in a browser, against a real server. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { patient } from '../../support/patience.ts'
import type { Browser, BrowserContext, Page } from '../../wire/support/chromium.ts'
import type { Server } from '../../wire/support/server.ts'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/**
 * Answers of the server that the console shows to people, and is not to be blamed for. 503 is a server that starts.
 */
const SHOWN_TO_PEOPLE = /^Failed to load resource: .*status of (?:400|401|403|404|409|429|503)|net::ERR_/

/** Chromium gives requests up when a network of the machine comes or goes, as those of containers in other tests. */
const NETWORK_CHANGED = 'net::ERR_NETWORK_CHANGED'
/** Chromium gives up what a page still loads when the browser leaves it, and may report that later. */
const LEFT_PAGE = 'net::ERR_ABORTED'
/** Limit of loads of a page of which files are lost since the network changed. */
const NETWORK_TRIES = 5

/** Kinds of files without which a page shows nothing, as Chromium names them. */
const PAGE_FILES: ReadonlySet<string> = new Set(['document', 'script', 'stylesheet'])

/** Window and theme of a browser. */
export interface Look {
  readonly width?: number
  readonly height?: number
  readonly theme?: 'light' | 'dark'
}

/** A person with a browser of their own. */
export class Visitor {
  readonly origin: string
  readonly context: BrowserContext
  readonly page: Page
  /** Problems of the page: errors of scripts, and violations of the Content Security Policy. */
  readonly problems: string[] = []
  /** Requests to other places than the console. */
  readonly elsewhere: string[] = []
  /** Files of the page that did not arrive since the last navigation, each with the reason. */
  readonly #lost: string[] = []

  private constructor(origin: string, context: BrowserContext, page: Page) {
    this.origin = origin
    this.context = context
    this.page = page
    page.on('pageerror', error => this.problems.push(error.stack ?? error.message))
    page.on('console', message => {
      if (message.type() === 'error' && !SHOWN_TO_PEOPLE.test(message.text())) this.problems.push(message.text())
    })
    page.on('request', request => {
      const { origin: asked, protocol } = new URL(request.url())
      if (asked !== origin && protocol !== 'data:' && protocol !== 'blob:') this.elsewhere.push(request.url())
    })
    page.on('requestfailed', request => {
      const { errorText = '' } = request.failure() ?? {}
      if (errorText === LEFT_PAGE) return
      if (PAGE_FILES.has(request.resourceType())) this.#lost.push(`${request.url()}: ${errorText}`)
    })
    page.on('response', response => {
      const isFile = PAGE_FILES.has(response.request().resourceType())
      if (isFile && !response.ok() && response.status() !== 304)
        this.#lost.push(`${response.url()}: status ${response.status()}`)
    })
  }

  /** Opens a page of the console, without being signed in. */
  static async at(browser: Browser, server: Server, { width = 1280, height = 900, theme = 'light' }: Look = {}) {
    const context = await browser.newContext({
      viewport: { width, height },
      colorScheme: theme,
      permissions: ['clipboard-read', 'clipboard-write'],
    })
    const page = await context.newPage()
    page.setDefaultTimeout(patient(30_000))
    return new Visitor(consoleOrigin(server), context, page)
  }

  /** Goes to a page and signs in with a key. */
  async signIn(key: string, path = '/'): Promise<this> {
    await this.#goTo(path)
    await this.page.getByLabel('API key').fill(key)
    await this.page.getByRole('button', { name: 'Sign in' }).click()
    // On narrow screens it is behind a button.
    await this.page.locator('nav[aria-label=Pages]').waitFor({ state: 'attached' })
    return this
  }

  /** Goes to a page of the console and waits until it is shown. */
  async open(path: string): Promise<void> {
    await this.#goTo(path)
    await this.page.locator('h1').first().waitFor()
  }

  /** Goes to a page by a link of the console, which is not loaded again, and waits until it is shown. */
  async follow(path: string): Promise<void> {
    await this.page.evaluate(to => {
      const link = document.createElement('a')
      link.href = to
      document.body.append(link)
      link.click()
      link.remove()
    }, path)
    await this.page.waitForURL(this.origin + path, { waitUntil: 'commit' })
    await this.page.locator('h1').first().waitFor()
  }

  /** Loads a page. Without one of its files it stays empty, so that a wait for its content would say nothing. */
  async #goTo(path: string): Promise<void> {
    for (let tries = 0; tries < NETWORK_TRIES; tries += 1) {
      this.#lost.length = 0
      await this.page.goto(this.origin + path)
      if (this.#lost.length === 0 || !this.#lost.every(reason => reason.endsWith(NETWORK_CHANGED))) break
    }
    assert.deepEqual(this.#lost, [], `${path} did not load`)
  }

  /** Findings of axe-core on the page as it is now. @param rules names of its rules; all by default */
  async axe(rules?: readonly string[]): Promise<string[]> {
    if (!(await this.page.evaluate(() => 'axe' in globalThis))) await this.page.evaluate(axe)
    return await this.page.evaluate(async runOnly => {
      type Results = { violations: { id: string; help: string; nodes: { html: string; failureSummary?: string }[] }[] }
      const { axe } = globalThis as unknown as { axe: { run(options: object): Promise<Results> } }
      const { violations } = await axe.run({
        resultTypes: ['violations'],
        ...(runOnly === undefined ? {} : { runOnly }),
      })
      return violations.flatMap(({ id, help, nodes }) =>
        nodes.map(({ html, failureSummary = '' }) => `${id}: ${help}: ${html.slice(0, 200)} ${failureSummary}`),
      )
    }, rules)
  }

  /** True if the page is wider than the window. */
  isTooWide(): Promise<boolean> {
    return this.page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth)
  }

  /** Headings of tables of which a single word is on two lines. */
  brokenHeadings(): Promise<string[]> {
    return this.page.evaluate(() => {
      const isBroken = (node: Node): boolean => {
        const word = document.createRange()
        word.selectNodeContents(node)
        const tops = new Set([...word.getClientRects()].map(({ top }) => Math.round(top)))
        return tops.size > 1
      }
      return [...document.querySelectorAll('th, [role=columnheader]')].flatMap(heading =>
        [...heading.childNodes].flatMap(node => {
          const text = node.textContent?.trim() ?? ''
          return node.nodeType === Node.TEXT_NODE && /^\S+$/.test(text) && isBroken(node) ? [text] : []
        }),
      )
    })
  }

  /** States and numbers in tables of which a part is cut off. */
  cutStates(): Promise<string[]> {
    return this.page.evaluate(() =>
      [...document.querySelectorAll('[role=cell]:is(:has(> .state:only-child), :has(> .progress), .end)')]
        .filter(cell => cell.scrollWidth > cell.clientWidth + 1)
        .map(cell => cell.textContent ?? ''),
    )
  }

  /** Nothing went wrong, and nothing was asked of anybody else. */
  assertClean(): void {
    assert.deepEqual(this.problems, [])
    assert.deepEqual(this.elsewhere, [])
  }
}

/** The origin of a server's console. */
export function consoleOrigin({ port }: Pick<Server, 'port'>): string {
  return `http://console.localhost:${port}`
}
