/**
 * RunPod's Python SDK in pods of a cluster: its image, a worker, and the official client that
 * submits jobs through a takeover.
 */
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { engineUrl, noDocker, workerImage } from '../../support/docker.ts'
import type { TestCluster } from '../../support/kubernetes.ts'
import { atExit, temporaryFolder } from './cleanup.ts'
import { python, skip } from './python.ts'
import { fixture } from './server.ts'

/** Reason why tests with the SDK in pods cannot run; false if they can. */
export const noSdkInPods: string | false = noDocker || skip

/**
 * The image of the tests' containers, under a name with a tag: a node pulls one with the tag
 * `latest` although it has it.
 */
export const SDK_IMAGE = 'runyard-test-sdk:1'

/** Gives the node of a cluster {@link SDK_IMAGE}, without a registry. */
export async function loadSdkImage(cluster: TestCluster): Promise<void> {
  const archive = join(temporaryFolder(), 'sdk.tar')
  const docker = (...words: string[]) => promisify(execFile)('docker', ['--host', engineUrl, ...words])
  await docker('tag', workerImage, SDK_IMAGE)
  await docker('save', '--output', archive, SDK_IMAGE)
  await cluster.load(archive)
  rmSync(archive)
}

/**
 * Each attempt at a job has the same result. The cluster of the tests has no names of Services, so the
 * worker gets an address for one.
 */
const WORKER = `import os, time
for name in os.environ:
    if name.startswith("RUNPOD_WEBHOOK_"):
        os.environ[name] = os.environ[name].replace(os.environ["SERVICE"], os.environ["SERVICE_ADDRESS"])
import runpod
def handler(job):
    given = job["input"]
    time.sleep(given["seconds"])
    return {"square": given["n"] ** 2, "sdk": runpod.__version__}
runpod.serverless.start({"handler": handler})`

/**
 * The template of a worker of the SDK.
 * @param service origin of the server in its variables
 * @param address origin at which it reaches that service
 */
export function sdkWorker(service: string, address: string) {
  const env = { SERVICE: service, SERVICE_ADDRESS: address }
  return { image: SDK_IMAGE, words: ['python3', '-u', '-c', WORKER], env }
}

/** Outcome of a job. */
export interface Outcome {
  readonly n: number
  readonly id: string
  readonly status: string
  readonly output: { readonly square: number; readonly sdk: string }
}

/**
 * Starts the official client, which submits jobs until its outcomes are asked for, each
 * again until it is acknowledged.
 * @param longJobS duration of the first job in seconds; each further one takes 0.2 s
 */
export function startSdkClient(server: { url: string; apiKey: string }, endpoint: string, longJobS: number) {
  const env = { PATH: process.env.PATH, HOME: temporaryFolder(), RUNPOD_ENDPOINT_BASE_URL: `${server.url}/v2` }
  const child = spawn(python, [`${fixture('python-client')}/takeover.py`, endpoint, String(longJobS)], { env })
  const takeBack = atExit(() => child.kill('SIGKILL'))
  let printed = ''
  let problems = ''
  child.stdout.setEncoding('utf8').on('data', text => (printed += text))
  child.stderr.setEncoding('utf8').on('data', text => (problems += text))
  const ended = new Promise(resolve => child.on('close', resolve))
  child.stdin.write(`${server.apiKey}\n`)
  return {
    acknowledged: () => printed.split('"acknowledged"').length - 1,
    async outcomes(): Promise<readonly Outcome[]> {
      child.stdin.end()
      await ended
      takeBack()
      const last = printed.split('\n').find(line => line.includes('"outcomes"'))
      return JSON.parse(last ?? assert.fail(`the client failed: ${problems}`)).outcomes
    },
  }
}
