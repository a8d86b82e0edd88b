/** Refusals of REST in words of people: the console shows them beside the fields of its forms. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openRig } from '../../support/rig.ts'

/** Words of the library that checks bodies. */
const RAW =
  /too (?:small|big)|invalid (?:input|option|string)|expected (?:string|number|int|array|object)|received \w+/i

interface Schema {
  readonly $ref?: string
  readonly properties?: Readonly<Record<string, unknown>>
}

interface Described {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly requestBody?: unknown }>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

/** Names of the members of a body. */
function members({ components }: Described, requestBody: unknown): readonly string[] {
  const { content } = requestBody as { content?: Readonly<Record<string, { readonly schema?: Schema }>> }
  const schema = content?.['application/json']?.schema
  const whole = schema?.$ref === undefined ? schema : components.schemas[schema.$ref.split('/').at(-1)!]
  return Object.keys(whole?.properties ?? {})
}

test('a body that is wrong in any member is refused in plain words', async t => {
  const rig = await openRig(t)
  const document = (await rig.ask('GET', '/v2/openapi.json')).json as Described
  const raw = new Set<string>()
  let refusals = 0
  for (const [path, methods] of Object.entries(document.paths).filter(([at]) => at.startsWith('/v2/')))
    for (const [method, { requestBody }] of Object.entries(methods)) {
      const names = requestBody === undefined ? [] : members(document, requestBody)
      if (names.length === 0) continue
      for (const value of ['', -1, 1e12, 0.5, true, [], ['', 1], {}, null]) {
        const body = Object.fromEntries(names.map(name => [name, value]))
        const { status, text } = await rig.ask(method.toUpperCase(), path.replaceAll(/\{\w+\}/g, 'none'), { body })
        if (status !== 400) continue
        refusals += 1
        for (const sentence of (JSON.parse(text).errors ?? []) as readonly string[])
          if (RAW.test(sentence)) raw.add(`${method} ${path}: ${sentence}`)
      }
    }
  assert.ok(refusals > 100, `${refusals} bodies were refused`)
  assert.deepEqual([...raw], [])
})
