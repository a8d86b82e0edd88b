/**
 * An operation of the development server: its method, its path and its effect; `takesJob` is true if it takes a job.
 */
type Operation = { method: 'get' | 'post'; path: string; does: string; takesJob?: true }

const operations: Operation[] = [
  { method: 'post', path: '/run', does: 'queues a job', takesJob: true },
  { method: 'post', path: '/runsync', does: 'queues a job and waits until it is over', takesJob: true },
  { method: 'get', path: '/status/{id}', does: 'shows a job' },
  { method: 'get', path: '/status-sync/{id}', does: 'shows a job once it is over' },
  { method: 'get', path: '/stream/{id}', does: 'returns the unread chunks' },
  { method: 'post', path: '/cancel/{id}', does: 'cancels a job' },
  { method: 'post', path: '/purge-queue', does: 'cancels the queued jobs' },
  { method: 'get', path: '/health', does: 'counts the jobs' },
]

/** The operations as a text with a line for each. */
export const listing = `The development server of a worker. Its operations:
${operations.map(({ method, path, does }) => `  ${method.toUpperCase()} ${path.slice(1)}: ${does}`).join('\n')}
/v2/<anything>/ may stand before them. openapi.json describes them for programs.`

const job = {
  type: 'object',
  required: ['input'],
  properties: {
    input: { description: 'input of the handler' },
    webhook: {
      type: 'string',
      format: 'uri',
      description: 'receives the end of the job: a POST with the answer of status',
    },
  },
}

/** The operations as a document of OpenAPI 3.1. */
export function openApi(): object {
  const paths = Object.fromEntries(operations.map(operation => [operation.path, pathItem(operation)]))
  return { openapi: '3.1.0', info: { title: 'Development server of a worker', version: '1' }, paths }
}

function pathItem({ method, path, does, takesJob }: Operation): object {
  const id = { name: 'id', in: 'path', required: true, schema: { type: 'string' } }
  return {
    [method]: {
      summary: does,
      ...(path.includes('{id}') ? { parameters: [id] } : {}),
      ...(takesJob ? { requestBody: { required: true, content: { 'application/json': { schema: job } } } } : {}),
      responses: { 200: { description: 'as JSON', content: { 'application/json': {} } } },
    },
  }
}
