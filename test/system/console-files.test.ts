import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import { buildConsole } from '../../scripts/console.ts'
import type { BuiltConsoleFile } from '../../src/system/console-files.ts'
import { createConsoleFiles } from '../../src/system/console-files.ts'

describe('the files of the console', () => {
  let built: readonly BuiltConsoleFile[]
  before(async () => {
    built = (await buildConsole()).files
  })
  /** Compressed bytes of files. */
  const size = (files: Iterable<string>) =>
    [...files].reduce((sum, path) => sum + gzipSync(built.find(file => file.path === path)!.contents).byteLength, 0)
  /** A script with those that it loads at once, and those that it may load later. */
  const loadedWith = (path: string, all = new Set<string>(), later = new Set<string>()) => {
    all.add(path)
    const text = Buffer.from(built.find(file => file.path === path)!.contents).toString()
    for (const [, name] of text.matchAll(/import\("\.\/([^"]+)"\)/g)) later.add(`assets/${name}`)
    for (const [, name] of text.matchAll(/(?:from|import)"\.\/([^"]+)"/g))
      if (!all.has(`assets/${name}`)) loadedWith(`assets/${name}`, all, later)
    return { all, later }
  }

  test('are small: no page has more than 80 kB of JavaScript and 12 kB of style, compressed', () => {
    const { all: first, later } = loadedWith(built.find(({ path }) => /main-.*\.js$/.test(path))!.path)
    assert.ok(size(first) <= 50_000, `the first page has ${size(first)} bytes`)
    assert.ok(later.size >= 3)
    for (const path of later) {
      const page = loadedWith(path)
      const whole = size(new Set([...first, ...page.all, ...page.later]))
      assert.ok(whole <= 80_000, `${path} makes a page of ${whole} bytes`)
    }
    const styles = built.filter(({ path }) => path.endsWith('.css')).map(({ path }) => path)
    assert.ok(size(styles) <= 12_000, `${size(styles)} bytes of style`)
  })

  test('load nothing from elsewhere', () => {
    for (const { path, contents } of built) {
      const found = Buffer.from(contents)
        .toString()
        .match(/(?:src|href)=["']?https?:[^\s"']+|@import[^;]*https?:[^;]+|url\(["']?https?:[^)]+/)
      assert.equal(found, null, `${path} has ${found?.[0]}`)
    }
  })

  test('have no code in the page itself', () => {
    const page = String(built.find(({ path }) => path === 'index.html')!.contents)
    assert.doesNotMatch(page, /<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=|\{\{/)
  })

  test('are found by their paths, compressed, and nothing else is', async () => {
    const files = createConsoleFiles({ hasChanged: () => false, read: async () => built })
    const page = await files.find('/index.html')
    assert.equal(page?.contentType, 'text/html; charset=utf-8')
    assert.equal(page.immutable, false)
    const script = /src="(\/assets\/[^"]+)"/.exec(Buffer.from(page.plain).toString())![1]!
    const found = await files.find(script)
    assert.equal(found?.immutable, true)
    assert.deepEqual(gunzipSync(found.gzip!), Buffer.from(found.plain))
    for (const path of ['/', '/../package.json', '/assets/', '/toString', '/__proto__'])
      assert.equal(await files.find(path), null)
  })

  test('are read again after a change when the page is asked for, and after a failure', async () => {
    let text = 'one'
    let hasChanged = false
    let fails = true
    const read = async () => {
      if (fails) throw new Error('a mistake in the sources')
      return [{ path: 'index.html', contents: text }]
    }
    const files = createConsoleFiles({ hasChanged: () => hasChanged, read })
    await assert.rejects(files.find('/index.html'), /a mistake/)
    fails = false
    const shown = async () => Buffer.from((await files.find('/index.html'))!.plain).toString()
    assert.equal(await shown(), 'one')
    text = 'two'
    assert.equal(await shown(), 'one')
    hasChanged = true
    assert.equal(await shown(), 'two')
  })
})
