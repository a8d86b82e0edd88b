/** The diagrams of the documentation. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { diagramFile, drawDiagrams } from '../../scripts/diagram.ts'
import { WORKER_PHASES } from '../../src/core/workers/worker-phase.ts'
import { assertNone, files, read } from '../tidy/files.ts'

const drawn = await drawDiagrams()

test('each is drawn from its text or the code as it is, and nothing else is there', () => {
  for (const [name, svg] of drawn)
    assert.equal(readFileSync(diagramFile(name), 'utf8'), svg, `${name}: run ./bin/node scripts/diagram.ts`)
  const kept = files.filter(path => /^docs\/diagrams\/.*\.svg$/.test(path))
  assert.deepEqual(kept.sort(), [...drawn.keys()].map(name => `docs/diagrams/${name}`).sort())
})

test('each is shown by a page', () => {
  const pages = files.filter(path => path.endsWith('.md')).map(read)
  assertNone([...drawn.keys()].filter(name => !pages.some(text => text.includes(`diagrams/${name})`))))
})

test('each has a title, fetches nothing and has colours for both themes', () => {
  for (const [name, svg] of drawn) {
    assert.match(svg, /<title>\w[^<]+<\/title>/, name)
    assert.match(svg, /@media \(prefers-color-scheme: dark\)/, name)
    assert.doesNotMatch(svg.replaceAll(/ xmlns(?::xlink)?="[^"]*"/g, ''), /https?:|<script|<image/, name)
  }
})

test('the diagram of a worker has all of its phases', () => {
  const text = read('docs/diagrams/worker-phases.dot')
  const named = new Set([...text.matchAll(/^ {2}(\w+) -> (\w+)/gm)].flatMap(([, from, to]) => [from!, to!]))
  assert.deepEqual([...named].filter(name => name !== 'start').sort(), [...WORKER_PHASES].sort())
})
