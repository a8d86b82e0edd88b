/**
 * Calls of an endpoint from programs, with its real addresses. The key comes from the environment, so
 * that a snippet can be stored.
 */
import type { Endpoint } from '../../../client/api-types.d.ts'

/** A program that can be copied. */
export interface Snippet {
  readonly id: 'curl' | 'python' | 'javascript' | 'openai'
  readonly title: string
  /** Command that installs the required packages; null for none. */
  readonly install: string | null
  readonly text: string
}

type CalledEndpoint = Pick<Endpoint, 'id' | 'name' | 'type' | 'requestUrls' | 'browserUrl'>

/** An address of an endpoint, with its purpose. */
export interface Address {
  readonly name: string
  readonly method: 'GET' | 'POST' | null
  readonly url: string
}

/** The addresses of an endpoint. @param queueUrl base address of job operations and of the health of endpoints */
export function listAddresses({ id, requestUrls, browserUrl }: CalledEndpoint, queueUrl: string): readonly Address[] {
  if ('base' in requestUrls) {
    return [
      { name: 'Your server', method: null, url: requestUrls.base },
      ...(browserUrl == null ? [] : [{ name: 'In browsers', method: null, url: browserUrl }]),
      { name: 'OpenAI', method: null, url: `${queueUrl}/openai/v1` },
      { name: 'Health', method: 'GET', url: `${queueUrl}/v2/${id}/health` },
      { name: 'Health of a worker', method: 'GET', url: requestUrls.health },
    ]
  }
  const { run, runSync, status, stream, cancel, health } = requestUrls
  return [
    { name: 'Run', method: 'POST', url: run },
    { name: 'Run and wait', method: 'POST', url: runSync },
    { name: 'Status', method: 'GET', url: status },
    { name: 'Stream', method: 'GET', url: stream },
    { name: 'Cancel', method: 'POST', url: cancel },
    { name: 'OpenAI', method: null, url: `${serverBase(run, id)}/${id}/openai/v1` },
    { name: 'Health', method: 'GET', url: health },
  ]
}

/** The programs for an endpoint. @param queueUrl as of {@link listAddresses} */
export function listSnippets(endpoint: CalledEndpoint, queueUrl: string): readonly Snippet[] {
  const { id, name, requestUrls } = endpoint
  if ('base' in requestUrls) return [...balancedSnippets(requestUrls.base), openAiSnippet(name, queueUrl)]
  const base = serverBase(requestUrls.run, id)
  return [
    {
      id: 'curl',
      title: 'curl',
      install: null,
      text: [
        `curl -sS ${requestUrls.runSync} \\`,
        '  -H "Authorization: Bearer $RUNYARD_API_KEY" \\',
        "  -H 'Content-Type: application/json' \\",
        '  -d \'{"input": {"name": "World"}}\'',
      ].join('\n'),
    },
    {
      id: 'python',
      title: 'Python',
      install: 'pip install runpod',
      text: [
        'import os',
        'import runpod',
        '',
        'runpod.api_key = os.environ["RUNYARD_API_KEY"]',
        `runpod.endpoint_url_base = "${base}"`,
        `print(runpod.Endpoint("${id}").run_sync({"name": "World"}))`,
      ].join('\n'),
    },
    {
      id: 'javascript',
      title: 'JavaScript',
      install: 'npm install runpod-sdk',
      text: [
        "import runpodSdk from 'runpod-sdk'",
        '',
        `const runpod = runpodSdk(process.env.RUNYARD_API_KEY, { baseUrl: '${base}' })`,
        `const job = await runpod.endpoint('${id}').runSync({ input: { name: 'World' } })`,
        'console.log(job.output)',
      ].join('\n'),
    },
    openAiSnippet(name, queueUrl),
  ]
}

/** A chat at the base URL of all models, where the name of the endpoint is that of its model. */
function openAiSnippet(name: string, queueUrl: string): Snippet {
  return {
    id: 'openai',
    title: 'OpenAI',
    install: 'pip install openai',
    text: [
      'import os',
      'import openai',
      '',
      'client = openai.OpenAI(',
      `    base_url="${queueUrl}/openai/v1",`,
      '    api_key=os.environ["RUNYARD_API_KEY"],',
      ')',
      'for event in client.chat.completions.create(',
      `    model=${JSON.stringify(name)}, messages=[{"role": "user", "content": "Hello"}], stream=True`,
      '):',
      '    print(event.choices[0].delta.content or "", end="", flush=True)',
    ].join('\n'),
  }
}

function balancedSnippets(base: string): readonly Snippet[] {
  const url = `${base.replace(/\/$/, '')}/`
  return [
    {
      id: 'curl',
      title: 'curl',
      install: null,
      text: `curl -sS ${url} -H "Authorization: Bearer $RUNYARD_API_KEY"`,
    },
    {
      id: 'python',
      title: 'Python',
      install: null,
      text: [
        'import os',
        'from urllib.request import Request, urlopen',
        '',
        'headers = {"Authorization": f"Bearer {os.environ[\'RUNYARD_API_KEY\']}"}',
        `print(urlopen(Request("${url}", headers=headers)).read().decode())`,
      ].join('\n'),
    },
    {
      id: 'javascript',
      title: 'JavaScript',
      install: null,
      text: [
        "const headers = { authorization: 'Bearer ' + process.env.RUNYARD_API_KEY }",
        `const response = await fetch('${url}', { headers })`,
        'console.log(await response.text())',
      ].join('\n'),
    },
  ]
}

/** The base address of clients: the path of all endpoints. */
function serverBase(run: string, id: string): string {
  return run.slice(0, -`/${id}/run`.length)
}
