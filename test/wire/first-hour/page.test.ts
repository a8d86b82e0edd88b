/** The first hour of somebody who builds a page: from its first click to an answer, in a browser. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer, type Server as HttpServer } from 'node:http'
import { after, before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { patient } from '../../support/patience.ts'
import { browserSkip, openBrowser } from '../support/browser.ts'
import { root, runCommand, type Server, startServer } from '../support/server.ts'

describe('a page', { skip: browserSkip, timeout: patient(120_000) }, () => {
  let pages: HttpServer
  let origin: string
  let server: Server
  let page: Page
  before(async () => {
    // Server of the page, which does not belong to Runyard.
    pages = createServer((_, response) => {
      response.setHeader('content-type', 'text/html')
      response.end(readFileSync(`${root}/examples/clients/page.html`))
    })
    await new Promise<void>(resolve => pages.listen(0, '127.0.0.1', resolve))
    origin = `http://127.0.0.1:${(pages.address() as { port: number }).port}`
    // In cages where this machine can make them, as for somebody who says nothing about it.
    server = await startServer({ args: ['--sample'], env: { RUNYARD_WORKER_SANDBOX: '' } })
    page = await (await openBrowser()).newPage()
    page.setDefaultTimeout(patient(30_000))
    await page.goto(origin)
  })
  after(() => pages.close())

  const command = async (...words: string[]) => {
    const { code, stdout, stderr } = await runCommand(words, {
      RUNYARD_URL: server.url,
      RUNYARD_API_KEY: server.apiKey,
    })
    assert.equal(code, 0, stderr)
    return stdout
  }

  /** Text of the page after a click, once it is no longer busy. */
  const answer = async (fields: Record<string, string>) => {
    for (const [name, value] of Object.entries(fields)) await page.fill(`input[name=${name}]`, value)
    await page.click('button')
    await page.waitForFunction("!['', 'running'].includes(document.querySelector('pre').textContent)")
    return (await page.textContent('pre')) ?? ''
  }

  test('may not call an endpoint that does not name it, and may once it does, with a key that expires soon', async () => {
    const key = JSON.parse(await command('keys', 'create', '--jobs', 'hello-node', '--expires', '15m', '--json')).key
    const fields = { url: server.url, endpoint: 'hellonode', key, name: 'Ada' }
    assert.match(await answer(fields), /^the browser did not send the request/)
    await command('endpoints', 'update', 'hello-node', '--cors-origins', origin)
    assert.deepEqual(JSON.parse(await answer(fields)).message, 'Hello, Ada!')
    assert.match(await answer({ ...fields, key: 'wrong' }), /^401: /)
  })

  test('shows the documentation of the API, whose links lead to operations', async () => {
    await page.goto(`${server.url}/v2/docs`)
    const problems: string[] = []
    page.on('console', message => problems.push(message.text()))
    await page.click('nav a[href="#runJob"]')
    const place = await page.$eval('#runJob', article => article.getBoundingClientRect().top)
    assert.ok(place >= 0 && place < 200, `it is at ${place}`)
    const text = await page.innerText('#runJob')
    assert.match(text, /Submits a job[\s\S]*curl -sS '.*\/run'[\s\S]*"status": "IN_QUEUE"/)
    assert.deepEqual(problems, [])
  })
})
