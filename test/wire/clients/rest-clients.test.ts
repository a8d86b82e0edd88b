/**
 * The requests of RunPod's REST tools, one after the other as they send them: each makes a template and an endpoint,
 * runs a job, changes both and deletes them again.
 */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { ask } from '../support/client.ts'
import { root, type Server, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'
import { SCRIPTS, type Step } from './rest-clients/scripts.ts'

let server: Server

before(async () => {
  server = await startServer()
})

/** Values that earlier steps kept, by their names. */
type Known = Map<string, string>

/** A text or a body with kept values in the places of `<name>`. */
function filled<Value>(value: Value, known: Known): Value {
  const text = JSON.stringify(value).replaceAll(/<(\w+)>/g, (place, name: string) => known.get(name) ?? place)
  return JSON.parse(text) as Value
}

/** Value at a path of an answer, such as `workers.max` or `endpoints[0].id`. */
function at(value: unknown, path: string): unknown {
  const names = path.split(/[.[\]]+/).filter(name => name !== '')
  return names.reduce<unknown>((inner, name) => (inner as Record<string, unknown> | undefined)?.[name], value)
}

async function run(step: Step, headers: Readonly<Record<string, string>>, known: Known): Promise<void> {
  const { method, path, body, status = 200, shows = {}, keeps = {}, ends = false } = filled(step, known)
  const own = step.key === undefined ? {} : { authorization: `Bearer ${known.get(step.key)}` }
  const send = () => ask(server, path, { method, body, headers: { ...headers, ...own } })
  const answer = ends ? await until(`${path} to end`, async () => ended(await send())) : await send()
  const what = `${method} ${path} is ${answer.status}: ${answer.text}`
  assert.equal(answer.status, status, what)
  if (status === 204) assert.equal(answer.text, '', what)
  if (path === '/graphql') assert.equal('errors' in answer.json, false, what)
  for (const [place, value] of Object.entries(shows))
    assert.deepEqual(at(answer.json, place), value, `${place} in ${what}`)
  for (const [name, place] of Object.entries(keeps)) known.set(name, String(at(answer.json, place)))
}

function ended(answer: Awaited<ReturnType<typeof ask>>) {
  return ['COMPLETED', 'FAILED'].includes(answer.json?.status) && answer
}

for (const { tool, headers, steps } of SCRIPTS) {
  describe(tool, () => {
    const known: Known = new Map([['image', `dir:${root}/examples/hello-node`]])
    for (const step of steps) test(step.what, () => run(step, headers, known))
  })
}
