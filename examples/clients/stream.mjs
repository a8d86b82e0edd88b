// Reads what a generator handler yields, while it yields it: RUNYARD_URL, RUNYARD_API_KEY and the id of an endpoint.
//   node stream.mjs mymodel '{"prompt": "a cat"}'
const { RUNYARD_URL = 'http://127.0.0.1:8080', RUNYARD_API_KEY } = process.env
const [endpoint, input = '{}'] = process.argv.slice(2)
const base = `${RUNYARD_URL}/v2/${endpoint}`
const headers = { authorization: `Bearer ${RUNYARD_API_KEY}`, 'content-type': 'application/json' }

const submitted = await fetch(`${base}/run`, {
  method: 'POST',
  headers,
  body: JSON.stringify({ input: JSON.parse(input) }),
})
const { id, error } = await submitted.json()
if (!submitted.ok) throw new Error(error)

// An EventSource sends no key, so the events are read with fetch, in pages too.
const response = await fetch(`${base}/stream/${id}`, { headers: { ...headers, accept: 'text/event-stream' } })
let rest = ''
for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
  const blocks = (rest + text).split('\n\n')
  rest = blocks.pop()
  for (const block of blocks) {
    const event = /^event: (.*)$/m.exec(block)?.[1] ?? 'message'
    const data = /^data: (.*)$/m.exec(block)?.[1]
    if (data === undefined) continue
    const value = JSON.parse(data)
    if (event === 'status') console.error(value.status)
    else if (event === 'restart') console.error('another attempt begins')
    else console.log(JSON.stringify(value.output))
  }
}
