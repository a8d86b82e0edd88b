// Runs a job from JavaScript, without a package: RUNYARD_URL, RUNYARD_API_KEY and the id of an endpoint.
//   node run.mjs hellonode '{"name": "Ada"}'
const { RUNYARD_URL = 'http://127.0.0.1:8080', RUNYARD_API_KEY } = process.env
const [endpoint, input = '{}'] = process.argv.slice(2)

async function call(path, init = {}) {
  const headers = { authorization: `Bearer ${RUNYARD_API_KEY}`, 'content-type': 'application/json' }
  const response = await fetch(`${RUNYARD_URL}/v2/${endpoint}/${path}`, { ...init, headers })
  const body = await response.json()
  if (!response.ok) throw new Error(`${response.status}: ${body.error}`)
  return body
}

let job = await call('run', { method: 'POST', body: JSON.stringify({ input: JSON.parse(input) }) })
while (['IN_QUEUE', 'IN_PROGRESS'].includes(job.status)) job = await call(`status-sync/${job.id}?wait=30000`)
if (job.status !== 'COMPLETED') throw new Error(`${job.status}: ${job.error ?? ''}`)
console.log(JSON.stringify(job.output))
