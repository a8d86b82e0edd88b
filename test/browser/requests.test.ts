/**
 * Requests in the console: the runner in each mode, the live list, the drawer of a job, and
 * actions on many jobs.
 */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { crc32, deflateSync } from 'node:zlib'
import { patient } from '../support/patience.ts'
import { browserSkip, openBrowser } from '../wire/support/browser.ts'
import type { Browser, Locator, Page } from '../wire/support/chromium.ts'
import { temporaryFolder } from '../wire/support/cleanup.ts'
import { ask, makeEndpoint, submit, whenFinal } from '../wire/support/client.ts'
import { fixture, root, type Server, startServer } from '../wire/support/server.ts'
import { until } from '../wire/support/until.ts'
import { Visitor } from './support/console.ts'

/** Longest time from the acceptance of a job to its row, in ms; far more than it takes where nothing else runs. */
const SEEN_WITHIN_MS = 3_000

describe('requests in the console', { skip: browserSkip, timeout: patient(240_000) }, () => {
  const folder = temporaryFolder()
  let server: Server
  let browser: Browser
  let gates = 0
  before(async () => {
    const worker = `${root}/test/browser/fixtures/gated`
    server = await startServer({ args: ['--sample', '--worker', worker, '--max-result-mb', '64'] })
    browser = await openBrowser()
  })

  /** A gate that holds jobs until it is opened. */
  function newGate(): { path: string; open: () => void } {
    gates += 1
    const path = join(folder, `gate-${gates}`)
    return { path, open: () => writeFileSync(path, '') }
  }

  async function at(path: string): Promise<{ visitor: Visitor; page: Page; result: Locator }> {
    const visitor = await (await Visitor.at(browser, server)).signIn(server.apiKey, path)
    const result = visitor.page.getByRole('region', { name: 'Result of the request' })
    return { visitor, page: visitor.page, result }
  }

  test('are run, and what comes out of them is shown with its times', async () => {
    const { visitor, page, result } = await at('/endpoints/gated/requests')
    await page.getByRole('button', { name: 'New request' }).click()
    for (const mode of ['Run', 'Run and wait']) {
      const gate = newGate()
      await page.getByRole('button', { name: mode, exact: true }).click()
      await page.getByLabel('Input (JSON)').fill(JSON.stringify({ gate: gate.path, by: mode }))
      await page.getByRole('button', { name: 'Send the request' }).click()
      await result.getByText('Running').waitFor()
      gate.open()
      await result.getByText('Completed').waitFor()
      await result.getByText(`"by": "${mode}"`).waitFor()
      await result.getByText(/^took/).waitFor()
    }
    // The sent request is kept for the next visit.
    await page.reload()
    await page.getByLabel('Earlier inputs').selectOption({ index: 2 })
    assert.match(await page.getByLabel('Input (JSON)').inputValue(), /"by":"Run"/)
    visitor.assertClean()
  })

  test('stream their chunks while the job runs', async () => {
    const gate = newGate()
    const { visitor, page, result } = await at('/endpoints/gated/requests?run=stream')
    await page
      .getByLabel('Input (JSON)')
      .fill(JSON.stringify({ words: ['first ', 'second ', 'third'], gate: gate.path }))
    await page.getByRole('button', { name: 'Send the request' }).click()
    await result.getByText('1 chunk, more may follow').waitFor()
    assert.equal(await result.locator('pre').innerText(), 'first ')
    gate.open()
    await result.getByText('first second third', { exact: true }).waitFor()
    await result.getByText('Completed').waitFor()
    await result.getByText('3 chunks', { exact: true }).waitFor()
    visitor.assertClean()
  })

  test('chat as OpenAI clients do, word by word', async () => {
    const gate = newGate()
    const { visitor, page, result } = await at('/endpoints/gated/requests?run=openai')
    const chat = {
      model: 'tiny',
      stream: true,
      gate: gate.path,
      messages: [{ role: 'user', content: 'one two three' }],
    }
    await page.getByLabel('Chat request (JSON)').fill(JSON.stringify({ ...chat, messages: undefined }))
    await page.getByText('a chat needs "messages"').waitFor()
    await page.getByLabel('Chat request (JSON)').fill(JSON.stringify(chat))
    await page.getByRole('button', { name: 'Send the request' }).click()
    await result.getByText('one', { exact: true }).waitFor()
    await result.getByText('Running').waitFor()
    gate.open()
    await result.getByText('one two three', { exact: true }).waitFor()
    await result.getByText('Completed').waitFor()
    visitor.assertClean()
  })

  test('show what they made: images, sound, tables and text, which can be saved whole', async () => {
    const made = {
      images: [
        makePng(),
        `data:image/svg+xml;base64,${btoa('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')}`,
      ],
      speech: makeWav(),
      clips: [{ take: WEBM }],
      file: `http://127.0.0.1:${server.port}/s3/results/lighthouse.mp4`,
      scores: [
        { label: 'lighthouse', score: 0.98 },
        { label: 'harbour', score: 0.02 },
      ],
      text: '## A lighthouse\n\n- **bright**\n- <img src=x onerror="globalThis.wasRun=1">',
    }
    const job = await submit(server, 'gated', made)
    await whenFinal(server, 'gated', job)
    for (const look of [{ width: 1280 }, { width: 390 }]) {
      const visitor = await Visitor.at(browser, server, look)
      const { page } = await visitor.signIn(server.apiKey, `/endpoints/gated/requests?job=${job}`)
      const output = page.locator('.output').first()
      const image = output.getByRole('img', { name: 'image echo.images[0]' })
      await image.waitFor()
      const size = await image.evaluate((shown: HTMLImageElement) => shown.decode().then(() => shown.naturalWidth))
      assert.equal(size, 4)
      await output.getByRole('img', { name: 'image echo.images[1]' }).waitFor()
      const player = output.getByLabel('audio echo.speech')
      await until('the sound to be read', () => player.evaluate((audio: HTMLAudioElement) => audio.duration > 0.4))
      const video = output.getByLabel('video echo.clips[0].take')
      await until('the video to be read', () => video.evaluate((clip: HTMLVideoElement) => clip.videoWidth === 8))
      await output.getByRole('columnheader', { name: 'label' }).waitFor()
      await output.getByText('A lighthouse', { exact: true }).waitFor()
      assert.equal(await output.getByRole('link', { name: made.file }).getAttribute('rel'), 'noopener noreferrer')
      assert.equal(await page.evaluate(() => 'wasRun' in globalThis), false)
      assert.deepEqual(await visitor.axe(), [])
      await page.emulateMedia({ colorScheme: 'dark' })
      assert.deepEqual(await visitor.axe(['color-contrast']), [])
      const [saved] = await Promise.all([
        page.waitForEvent('download'),
        output.getByRole('button', { name: `Download ${job}-output-1.png` }).click(),
      ])
      assert.deepEqual(readFileSync(await saved.path()).toString('base64'), made.images[0])
      const [whole] = await Promise.all([
        page.waitForEvent('download'),
        output.getByRole('button', { name: 'Download whole output' }).click(),
      ])
      assert.deepEqual(JSON.parse(readFileSync(await whole.path(), 'utf8')).echo, made)
      await output.getByRole('button', { name: 'Copy the output' }).click()
      await page.getByText('Copied the output').waitFor()
      const copied = await page.evaluate(() => navigator.clipboard.readText())
      assert.deepEqual(JSON.parse(copied).echo, made)
      visitor.assertClean()
      await visitor.context.close()
    }
  })

  test('give a result of 40 MB whole, which no page shows', async () => {
    const { visitor, page, result } = await at('/endpoints/gated/requests?run=runsync')
    await page.getByLabel('Input (JSON)').fill('{"megabytes": 40}')
    await page.getByRole('button', { name: 'Send the request' }).click()
    await result.getByText('40.0 MB: too large to show here.').waitFor()
    await result.getByRole('link', { name: 'Open the job' }).click()
    const drawer = page.getByRole('dialog', { name: /^Job / })
    await drawer.getByText('40.0 MB: too large to show here.').waitFor()
    assert.deepEqual(await visitor.axe(), [])
    const [saved] = await Promise.all([
      page.waitForEvent('download'),
      drawer.getByRole('button', { name: 'Download whole output' }).click(),
    ])
    const lines = JSON.parse(readFileSync(await saved.path(), 'utf8')) as string[]
    assert.deepEqual([lines.length, lines[39]?.length, lines[39]?.slice(0, 4)], [40, 999_997, '39 x'])
    // One that is just not too large is shown by its beginning.
    const shown = await submit(server, 'gated', { megabytes: 19 })
    await whenFinal(server, 'gated', shown)
    await visitor.open(`/endpoints/gated/requests?job=${shown}`)
    const [whole] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('dialog').getByRole('button', { name: 'Download whole output' }).click(),
    ])
    assert.equal((JSON.parse(readFileSync(await whole.path(), 'utf8')) as string[]).length, 19)
    visitor.assertClean()
  })

  test('chat in the playground: with settings and images, stopped, and as programs', async () => {
    for (const look of [{ width: 1280 }, { width: 390 }]) {
      const gate = newGate()
      const visitor = await Visitor.at(browser, server, look)
      const { page } = await visitor.signIn(server.apiKey, '/playground?model=gated')
      const log = page.getByRole('log', { name: 'Chat' })
      const message = page.getByLabel('Message')
      await page.getByLabel('Model').waitFor()
      await page.getByLabel('Temperature').fill('0.5')
      const picture = { name: 'a.png', mimeType: 'image/png', buffer: Buffer.from(makePng(), 'base64') }
      await page.getByLabel('Images').setInputFiles(picture)
      await page.getByRole('button', { name: 'Remove image 1' }).waitFor()
      await message.fill('What is **this**?')
      const sent = page.waitForRequest(request => request.url().endsWith('/openai/v1/chat/completions'))
      await message.press('Enter')
      const { model, temperature, stream } = (await sent).postDataJSON()
      assert.deepEqual({ model, temperature, stream }, { model: 'gated', temperature: 0.5, stream: true })
      const answer = log.getByRole('group', { name: 'The model' })
      await answer.locator('strong', { hasText: 'this' }).waitFor()
      await answer.getByText('data:image/png;base64,').waitFor()
      await answer.getByText(/in all, 2 tokens$/).waitFor()
      assert.deepEqual(await visitor.axe(), [])
      assert.equal(await visitor.isTooWide(), false)
      await page.emulateMedia({ colorScheme: 'dark' })
      assert.deepEqual(await visitor.axe(['color-contrast']), [])
      await page.getByLabel('System prompt').fill(`gate ${gate.path}`)
      await message.fill('one two three')
      await page.getByRole('button', { name: 'Send' }).click()
      await answer.last().getByText('one', { exact: true }).waitFor()
      await page.getByRole('button', { name: 'Stop' }).click()
      await answer.last().getByText('Stopped.').waitFor()
      const job = (await answer.last().getByRole('link', { name: 'Job' }).getAttribute('href'))!.split('job=')[1]!
      assert.equal((await whenFinal(server, 'gated', job)).status, 'CANCELLED')
      await page.getByText('This chat as a program').click()
      const base = `${server.url}/openai/v1`
      for (const [language, line] of [
        ['curl', `curl -sSN '${base}/chat/completions'`],
        ['Python', 'client.chat.completions.create('],
        ['JavaScript', 'client.chat.completions.create('],
      ] as const) {
        await page.getByRole('button', { name: language, exact: true }).click()
        await page.getByText(line).waitFor()
        await page.getByRole('button', { name: 'Copy the program' }).click()
        await until(`the program in ${language} to be copied`, async () => {
          const text = await page.evaluate(() => navigator.clipboard.readText())
          return text.includes(line) && text.includes(base) && text.includes('RUNYARD_API_KEY')
        })
      }
      await page.getByRole('button', { name: 'New chat' }).click()
      await log.waitFor({ state: 'detached' })
      gate.open()
      visitor.assertClean()
      await visitor.context.close()
    }
  })

  test('chat with one of several models of a load-balancing endpoint', async () => {
    await makeEndpoint(server, {
      folder: fixture('balanced-openai'),
      env: { SHAPE: 'vllm', MODELS: 'big,lora', MODEL_NAME: 'big' },
      settings: { type: 'LB', scalerType: 'REQUEST_COUNT', scalerValue: 8, workersMax: 1, name: 'qwen' },
    })
    const { visitor, page } = await at('/playground?model=qwen')
    const answer = page.getByRole('log', { name: 'Chat' }).getByRole('group', { name: 'The model' })
    await page.getByLabel('Message').fill('one two')
    await page.getByRole('button', { name: 'Send' }).click()
    await answer.getByText('one two').waitFor()
    await answer.getByText(/in all$/).waitFor()
    // A model that has answered is ready, and its worker names the others.
    await page.getByLabel('Model', { exact: true }).selectOption('qwen/lora')
    await page.getByLabel('Stream').uncheck()
    await page.getByLabel('Message').fill('three')
    const answered = page.waitForResponse(response => response.url().endsWith('/chat/completions'))
    await page.getByRole('button', { name: 'Send' }).click()
    await answer.last().getByText('three').waitFor()
    assert.equal((await (await answered).json()).model, 'lora')
    visitor.assertClean()
  })

  test('that are wrong are not sent, and what the server refuses is said', async () => {
    const { visitor, page, result } = await at('/endpoints/gated/requests?run=run')
    const send = page.getByRole('button', { name: 'Send the request' })
    await page.getByLabel('Input (JSON)').fill('{"name": ')
    await page
      .getByText(/JSON/)
      .filter({ hasText: /Unexpected end/ })
      .waitFor()
    assert.equal(await send.isDisabled(), true)
    await page.getByLabel('Input (JSON)').fill('[1]')
    await page.getByText('it must be a JSON object').waitFor()
    assert.equal(await send.isDisabled(), true)
    await page.getByLabel('Input (JSON)').fill('{}')
    await page.getByText('Options', { exact: true }).click()
    await page.getByLabel('Execution timeout (s)').fill('1')
    await send.click()
    await result
      .getByRole('alert')
      .filter({ hasText: /executionTimeout/ })
      .waitFor()
    await result.getByText('Not run').waitFor()
    // The user corrects it in its field.
    await page.getByLabel('Execution timeout (s)').fill('60')
    await send.click()
    await result.getByText('Completed').waitFor()
    visitor.assertClean()
  })

  test('are in the list as soon as they are accepted, and end in it without a reload', async () => {
    const gate = newGate()
    const { visitor, page, result } = await at('/endpoints/gated/requests?run=run')
    await page.getByRole('table', { name: 'Jobs' }).waitFor()
    await page.evaluate(() => {
      const seen: Record<string, number> = {}
      Object.assign(globalThis, { seen })
      new MutationObserver(() => {
        for (const link of document.querySelectorAll('[aria-label="Jobs"] [role="row"] a')) {
          const { title } = link as HTMLElement
          seen[title] ??= performance.now()
        }
      }).observe(document.body, { subtree: true, childList: true })
    })
    await page.getByLabel('Input (JSON)').fill(JSON.stringify({ gate: gate.path }))
    await page.getByRole('button', { name: 'Send the request' }).click()
    const href = await result.getByRole('link', { name: 'Open the job' }).getAttribute('href')
    const id = new URLSearchParams(href!.split('?')[1]).get('job')!
    await jobRow(page, id).getByText('Running').waitFor()
    const seenAfterMs = await page.evaluate(job => {
      const { seen } = globalThis as unknown as { seen: Record<string, number> }
      const [call] = performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('/v2/gated/run'))
      return seen[job]! - (call as PerformanceResourceTiming).responseEnd
    }, id)
    assert.ok(seenAfterMs < patient(SEEN_WITHIN_MS), `seen after ${seenAfterMs} ms`)
    // A job of another client is listed, too.
    const others = await submit(server, 'gated', { gate: gate.path })
    await jobRow(page, others).getByText('Running').waitFor()
    gate.open()
    for (const job of [id, others]) await jobRow(page, job).getByText('Completed').waitFor()
    assert.equal(await page.evaluate(() => 'seen' in globalThis), true)
    visitor.assertClean()
  })

  test('show their input, error and story in a drawer, and are run again with other inputs', async () => {
    const needs = newGate()
    const failed = await submit(server, 'gated', { needs: needs.path, who: 'Ada' })
    assert.equal((await whenFinal(server, 'gated', failed)).status, 'FAILED')
    const { visitor, page } = await at('/endpoints/gated/requests')
    await jobRow(page, failed).getByText('Error: the weights are not there').click()
    const drawer = page.getByRole('dialog', { name: `Job ${failed}` })
    await drawer.getByText('"who": "Ada"').waitFor()
    await drawer.getByText('Traceback').waitFor()
    await drawer
      .getByText(/at .*handler\.mjs/)
      .first()
      .waitFor()
    const story = drawer.getByRole('list', { name: 'Story of the job' })
    assert.deepEqual(await story.locator('b').allInnerTexts(), ['Accepted and queued', 'Attempt 1 ran', 'Failed'])
    await drawer.getByRole('button', { name: 'Run again with changes…' }).click()
    const again = page.getByRole('dialog', { name: 'Run again as a new job' })
    await again.getByLabel('Input (JSON)').fill('{"who": ')
    assert.equal(await again.getByRole('button', { name: /^Run with/ }).isDisabled(), true)
    await again.getByLabel('Input (JSON)').fill('{"who": "Grace"}')
    await again.getByRole('button', { name: 'Run with this input' }).click()
    await again.waitFor({ state: 'detached' })
    const next = page.getByRole('dialog', { name: /^Job / })
    await next.getByText('Completed').first().waitFor()
    await next.getByRole('heading', { name: 'Output' }).waitFor()
    assert.equal(await next.getByText('"who": "Grace"').count(), 2)
    visitor.assertClean()
  })

  test('are cancelled while they run', async () => {
    const held = await submit(server, 'gated', { gate: newGate().path })
    const { visitor, page } = await at(`/endpoints/gated/requests?job=${held}`)
    const drawer = page.getByRole('dialog', { name: `Job ${held}` })
    await drawer.getByText('Running').first().waitFor()
    await drawer.getByRole('button', { name: 'Cancel the job…' }).click()
    const asked = page.getByRole('dialog', { name: 'Cancel this job?' })
    await asked.getByText('Its worker stops it.').waitFor()
    await asked.getByRole('button', { name: 'Cancel the job' }).click()
    await drawer.getByText('Cancelled').first().waitFor()
    assert.equal((await whenFinal(server, 'gated', held)).status, 'CANCELLED')
    visitor.assertClean()
  })

  test('that failed are retried together, after their number was said', async () => {
    const needs = newGate()
    const failed = await Promise.all([1, 2, 3].map(n => submit(server, 'gated', { needs: needs.path, n })))
    for (const job of failed) await whenFinal(server, 'gated', job)
    needs.open()
    const { visitor, page } = await at('/endpoints/gated/requests?span=1h')
    await page.getByRole('searchbox', { name: 'Text of the error' }).fill('weights')
    await page.getByRole('button', { name: 'Retry all failed that match…' }).click()
    const asked = page.getByRole('dialog')
    const title = await asked.getByRole('heading', { name: /^Retry \d+ jobs\?$/ }).innerText()
    const { json } = await ask(server, '/v2/gated/requests?status=FAILED')
    assert.equal(title, `Retry ${json.requests.length} jobs?`)
    await asked.getByText('weights').waitFor()
    await asked.getByRole('button', { name: /^Retry \d+ jobs$/ }).click()
    await asked.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Clear filters' }).click()
    for (const job of failed) await jobRow(page, job).getByText('Completed').waitFor()
    visitor.assertClean()
  })

  test('have their tokens in usage, by model', async () => {
    const chat = { model: 'tiny', messages: [{ role: 'user', content: 'one two' }] }
    assert.equal((await ask(server, '/v2/gated/openai/v1/chat/completions', { body: chat })).status, 200)
    const tokens = async () => (await ask(server, '/v2/billing/tokens?lastN=2')).text
    await until('the tokens to be counted', async () => (await tokens()).includes('tiny'))
    const { visitor, page } = await at('/usage')
    const row = page.getByRole('table', { name: 'Tokens by model' }).getByRole('row').filter({ hasText: 'tiny' })
    await row.getByText('5', { exact: true }).first().waitFor()
    await row.getByText('2', { exact: true }).first().waitFor()
    visitor.assertClean()
  })

  test('that wait are purged, after their number was said', async () => {
    await ask(server, '/v2/serverless/hellonode', { method: 'PATCH', body: { workers: { max: 0 } } })
    const waiting = await Promise.all([1, 2, 3].map(n => submit(server, 'hellonode', { n })))
    const { visitor, page } = await at('/endpoints/hellonode/requests')
    for (const job of waiting) await jobRow(page, job).getByText('Queued').waitFor()
    await page.getByRole('button', { name: 'Purge the queue…' }).click()
    const asked = page.getByRole('dialog', { name: 'Purge the queue?' })
    await asked.getByText('3 jobs of this endpoint wait.').waitFor()
    await asked.getByRole('button', { name: 'Cancel 3 waiting jobs' }).click()
    await asked.waitFor({ state: 'detached' })
    for (const job of waiting) await jobRow(page, job).getByText('Cancelled').waitFor()
    visitor.assertClean()
  })
})

/** A video of one frame of 8 x 8 pixels, as base64 (https://www.webmproject.org/docs/container/). */
const WEBM =
  'GkXfo0AgQoaBAUL3gQFC8oEEQvOBCEKCQAR3ZWJtQoeBAkKFgQIYU4BnQI0VSalmQCgq17FAAw9CQE2AQAZ3aGFtbXlXQUAGd2hhbW15RIlACECPQAAAAAAAFlSua0AxrkAu14EBY8WBAZyBACK1nEADdW5khkAFVl9WUDglhohAA1ZQOIOBAeBABrCBCLqBCB9DtnVAIueBAKNAHIEAAIAwAQCdASoIAAgAAUAmJaQAA3AA/vz0AAA='

/** A picture of 4 x 2 pixels, as base64. */
function makePng(): string {
  const chunk = (name: string, data: Buffer) => {
    const named = Buffer.concat([Buffer.from(name, 'latin1'), data])
    const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
    length.writeUInt32BE(data.length)
    sum.writeUInt32BE(crc32(named))
    return Buffer.concat([length, named, sum])
  }
  const head = Buffer.from([0, 0, 0, 4, 0, 0, 0, 2, 8, 0, 0, 0, 0])
  const pixels = deflateSync(Buffer.from([0, 1, 60, 120, 180, 0, 180, 120, 60, 1]))
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
  const chunks = [chunk('IHDR', head), chunk('IDAT', pixels), chunk('IEND', Buffer.alloc(0))]
  return Buffer.concat([signature, ...chunks]).toString('base64')
}

/** Half a second of silence, as base64. */
function makeWav(): string {
  const [rate, samples] = [8_000, 4_000]
  const head = Buffer.alloc(44)
  head.write('RIFF', 0)
  head.writeUInt32LE(36 + samples, 4)
  head.write('WAVEfmt ', 8)
  head.writeUInt32LE(16, 16)
  head.set([1, 0, 1, 0], 20)
  head.writeUInt32LE(rate, 24)
  head.writeUInt32LE(rate, 28)
  head.set([1, 0, 8, 0], 32)
  head.write('data', 36)
  head.writeUInt32LE(samples, 40)
  return Buffer.concat([head, Buffer.alloc(samples, 128)]).toString('base64')
}

/** The row of a job. */
function jobRow(page: Page, job: string): Locator {
  return page
    .getByRole('table', { name: 'Jobs' })
    .getByRole('row')
    .filter({ has: page.getByTitle(job, { exact: true }) })
}
