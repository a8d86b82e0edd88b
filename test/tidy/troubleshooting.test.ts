/** Messages that the page of troubleshooting quotes are messages of the program. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertNone, files, read } from './files.ts'

const page = read('docs/guides/troubleshooting.md')
const sources = files.filter(path => /^src\/.*\.ts$/.test(path)).map(read)

/** Quoted texts in the first column of a section; `...` and numbers stand for anything. */
function quotedIn(section: string): string[] {
  const [, text = ''] = page.split(`## ${section}\n`)
  const rows = text.split('\n## ')[0]!.matchAll(/^\| (.+?) \|/gm)
  return [...rows].flatMap(([, cell]) => [...cell!.matchAll(/`([^`]+)`/g)].map(([, quoted]) => quoted!))
}

test('errors that the page quotes exist', () => {
  const quoted = [...quotedIn('The server does not start'), ...quotedIn('A job has failed')]
  assert.ok(quoted.length > 10, String(quoted.length))
  const pieces = quoted
    .flatMap(text => text.split(/\.\.\.|\d+/).map(piece => piece.trim()))
    .filter(piece => piece !== '')
  assertNone(pieces.filter(piece => !sources.some(text => text.includes(piece))))
})
