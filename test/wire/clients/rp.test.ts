/** Each command of `rp`, the command line of RunPod's SDK 2.0, against a real server: with an input and without. */
import assert from 'node:assert/strict'
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { text as readText } from 'node:stream/consumers'
import { before, describe, test } from 'node:test'
import { temporaryFolder } from '../support/cleanup.ts'
import { ask, graphql, makeEndpoint, runJob } from '../support/client.ts'
import { sdk2, sdk2Skip } from '../support/python.ts'
import { fixture, type Server, startServer } from '../support/server.ts'

const START_MS = 60_000
const PROGRAM = ['-c', 'from runpod.rp_cli.main import run; run()']

/** Words of a command, its whole input, its exit code, and what it prints. */
type Row = readonly [line: string, input: string, code: number, text: RegExp]

/** The output of a program, until it ends or has printed the wanted text; then it is ended. */
async function outputOf(
  child: ChildProcessWithoutNullStreams,
  wanted?: RegExp,
): Promise<{ text: string; code: number | null }> {
  let text = ''
  const { promise, resolve } = Promise.withResolvers<number | null>()
  const read = (part: Buffer) => {
    text += part
    if (wanted?.test(text) === true) child.kill('SIGKILL')
  }
  child.stdout.on('data', read)
  child.stderr.on('data', read)
  child.on('close', resolve)
  const code = await promise
  return { text, code }
}

/** Commands that print a traceback of their own where the server refuses: they catch nothing. */
const CATCHES_NOTHING = /^(logs|pod create)/

describe("the command line of RunPod's SDK 2.0", { skip: sdk2Skip, concurrency: 4 }, () => {
  let server: Server

  before(async () => {
    server = await startServer()
  })

  const variables = () => ({
    PATH: process.env.PATH ?? '',
    RUNPOD_API_KEY: server.apiKey,
    RUNPOD_API_BASE_URL: server.url,
    RUNPOD_ENDPOINT_BASE_URL: `${server.url}/v2`,
    RUNPOD_HAPI_URL: server.url,
  })

  /** Runs commands one after the other, each as a process of its own. */
  async function commands(...rows: readonly Row[]): Promise<void> {
    const home = temporaryFolder()
    const script = join(fixture('python-client'), 'rp_commands.py')
    const child = spawn(sdk2, [script], { env: { ...variables(), HOME: home }, cwd: home, stdio: 'pipe' })
    child.stdin.end(JSON.stringify(rows.map(([line, input]) => [line.split(' '), input])))
    const [printed, problems] = await Promise.all([readText(child.stdout), readText(child.stderr)])
    const seen = printed === '' ? assert.fail(problems) : JSON.parse(printed)
    for (const [index, [line, , code, text]] of rows.entries()) {
      const [status, output] = seen[index]
      assert.deepEqual([line, status], [line, code], output)
      assert.match(output, text, line)
      if (!CATCHES_NOTHING.test(line)) assert.doesNotMatch(output, /Traceback/, line)
    }
  }

  /** An app with an environment and one endpoint. */
  async function makeApp(name: string): Promise<void> {
    const app = 'mutation ($input: CreateFlashAppInput!) { createFlashApp(input: $input) { id } }'
    const made = await graphql(server, app, { input: { name } })
    const environment =
      'mutation ($input: CreateFlashEnvironmentInput!) { createFlashEnvironment(input: $input) { id } }'
    const place = { flashAppId: made.createFlashApp.id, name: 'default' }
    const { createFlashEnvironment } = await graphql(server, environment, { input: place })
    const template = {
      name: `${name}-hello-template`,
      imageName: 'python:3.13',
      containerDiskInGb: 10,
      dockerArgs: '',
      env: [],
    }
    const endpoint = {
      name: 'hello',
      flashEnvironmentId: createFlashEnvironment.id,
      instanceIds: ['cpu3c-1-2'],
      template,
    }
    const save = 'mutation ($input: EndpointInput!) { saveEndpoint(input: $input) { id } }'
    await graphql(server, save, { input: endpoint })
  }

  test('commands of apps show, make and delete what is there, and say what is not', async () => {
    await makeApp('shop')
    await commands(
      ['flash app list', '', 0, /shop +default/],
      ['flash app get shop', '', 0, /default +no build/],
      ['flash app get none', '', 1, /no app named 'none'/],
      ['flash env list --app shop', '', 0, /default +-/],
      ['flash env get default --app shop', '', 0, /shop\/default[\s\S]*hello/],
      ['flash env get none --app shop', '', 1, /no environment 'none' in app 'shop'/],
      ['flash env add staging --app shop', '', 0, /created shop\/staging/],
      ['flash env add staging --app shop', '', 1, /Error: .*'staging'/],
      ['flash env add staging --app none', '', 1, /no app named 'none'/],
      ['flash env delete staging --app shop', '', 1, /\[y\/N\]: Aborted!/],
      ['flash env delete staging --app shop', 'y\n', 0, /deleted shop\/staging 0 endpoints removed/],
      ['flash env delete staging --app shop --yes', '', 1, /no environment 'staging' in app 'shop'/],
      ['flash undeploy --app shop', '', 1, /\[y\/N\]: Aborted!/],
      ['flash undeploy --app shop', 'y\n', 0, /undeployed shop\/default 1 endpoints removed/],
      ['flash undeploy --app shop --yes', '', 1, /no environment 'default' in app 'shop'/],
      ['flash app delete shop', 'n\n', 1, /Aborted!/],
      ['flash app delete shop', 'y\n', 0, /deleted shop 0 endpoints removed/],
      ['flash app delete shop --yes', '', 1, /no app named 'shop'/],
      ['flash env list', '', 1, /pass --app <name>/],
      ['flash init fresh', '', 0, /initialized fresh/],
      ['flash init fresh', '', 1, /already exist/],
      ['flash env list', '', 1, /no app named 'fresh'/],
      ['flash deploy none', '', 1, /does not exist/],
      ['flash dev none.py --once', '', 2, /does not exist/],
    )
  })

  test('commands of secrets, registries, keys and pods take their values as words and as an input', async () => {
    await commands(
      ['login --api-key rpa_x --profile other', '', 0, /credentials saved/],
      ['update', '', 1, /could not reach pypi/],
      ['secret add', '', 1, /name: Aborted!/],
      ['secret add', 'RP_ASKED\nvalue\n', 0, /secret RP_ASKED created/],
      ['secret add RP_ASKED --value x', '', 1, /a secret named 'RP_ASKED' already exists/],
      ['secret add RP_TOKEN --value x --description mine', '', 0, /secret RP_TOKEN created/],
      ['secret list', '', 0, /RP_ASKED[\s\S]*RP_TOKEN +mine/],
      ['secret delete RP_ASKED', '', 1, /Aborted!/],
      ['secret delete RP_ASKED', 'y\n', 0, /deleted secret RP_ASKED/],
      ['secret delete RP_TOKEN --yes', '', 0, /deleted secret RP_TOKEN/],
      ['secret delete RP_TOKEN --yes', '', 1, /no secret named 'RP_TOKEN'/],
      ['registry list', '', 0, /no registry credentials/],
      ['registry add', '', 1, /name: Aborted!/],
      ['registry add', 'rp-asked\nu\np\n', 0, /registry credential rp-asked created/],
      ['registry add rp-hub --username u --password p', '', 0, /registry credential rp-hub created/],
      ['registry list', '', 0, /rp-asked[\s\S]*rp-hub/],
      ['registry delete rp-asked', '', 1, /Aborted!/],
      ['registry delete rp-asked', 'y\n', 0, /deleted registry credential rp-asked/],
      ['registry delete rp-hub --yes', '', 0, /deleted registry credential rp-hub/],
      ['registry delete rp-hub --yes', '', 1, /no registry credential named 'rp-hub'/],
      ['pod list', '', 0, /\| ID +\| Name \| Status \| Image \|/],
      ['pod create', '', 1, /Aborted!/],
      ['pod create p', 'n\n', 1, /Aborted!/],
      [
        'pod create',
        'p\ny\n',
        1,
        /QueryError: .*Runyard runs serverless endpoints and tasks of apps .*no other pods$/m,
      ],
      ['pod sync a b', '', 0, /No SSH keys found/],
      ['ssh list', '', 0, /Fingerprint/],
      ['ssh add', '', 1, /Aborted!/],
      ['ssh add', 'y\nmy key\n', 0, /The key has been added/],
      ['ssh list', '', 0, /my-key +\| ssh-rsa/],
      ['pod sync a b', '', 0, /Error during sync: Pod a did not reach 'RUNNING' state/],
      ['pod connect nothing', '', 1, /Error: Pod nothing did not reach 'RUNNING' state/],
      ['ssh nothing', '', 1, /Error: Pod nothing did not reach 'RUNNING' state/],
      ['logs nothing', '', 1, /ClientResponseError: 404/],
      ['logs nothing -f', '', 1, /ClientResponseError: 404/],
      ['logs nothing -f --type container', '', 1, /ClientResponseError: 404/],
    )
  })

  test('rp login gets a key that a person allows, and ends with a sentence where it is refused', async () => {
    const loginAs = async (decide: (id: string) => Promise<unknown>) => {
      const home = temporaryFolder()
      const env = {
        HOME: home,
        PATH: process.env.PATH,
        RUNPOD_API_BASE_URL: server.url,
        RUNPOD_CONSOLE_URL: 'http://console.test',
      }
      const child = spawn(sdk2, [...PROGRAM, 'login', '--no-open'], { env })
      child.stdin.end()
      const page = /http:\/\/console\.test\/flash\/login\?request=([\w-]{22})/
      let shown = ''
      child.stdout.on('data', part => {
        const isNew = !page.test(shown)
        shown += part
        if (isNew && page.test(shown)) void decide(page.exec(shown)![1]!)
      })
      return { home, ...(await outputOf(child)) }
    }
    const allowed = await loginAs(id => ask(server, '/v2/account/login-approvals', { body: { id, name: 'laptop' } }))
    assert.equal(allowed.code, 0, allowed.text)
    const [, key] = /api_key = "(rpa_[\w-]+)"/.exec(readFileSync(join(allowed.home, '.runpod/config.toml'), 'utf8'))!
    assert.equal((await ask(server, '/v2/serverless', { headers: { authorization: `Bearer ${key}` } })).status, 200)
    const refused = await loginAs(id => ask(server, '/v2/account/login-denials', { body: { id } }))
    assert.notEqual(refused.code, 0)
    assert.match(refused.text, /login denied/i)
  })

  test('logs of a worker are shown at once and as they come, of each kind', async () => {
    const endpoint = await makeEndpoint(server, {
      folder: fixture('python-hooks'),
      args: `"${sdk2}" handler.py`,
      env: { WIRE_FOLDER: temporaryFolder(), WIRE_NO_HOOK: '1' },
      settings: { workersMax: 1, idleTimeout: 3600 },
    })
    const { workerId } = await runJob(server, endpoint, { raise: 'no' }, START_MS)
    const logs = (...words: string[]) =>
      spawn(sdk2, [...PROGRAM, 'logs', workerId!, ...words], { env: variables(), stdio: 'pipe' })
    const shown = await outputOf(logs())
    assert.equal(shown.code, 0, shown.text)
    assert.match(shown.text, /^\[container\] .*about to raise/m)
    const followed = [
      ['-f', '--tail', '50'],
      ['-f', '--type', 'container'],
    ]
    for (const words of followed) {
      const { text } = await outputOf(logs(...words), /about to raise/)
      assert.match(text, /^\[container\] .*about to raise/m, words.join(' '))
    }
  })
})
