/** A release that crashes at once in its container, under steady load. */
import { describe, test } from 'node:test'
import { noDocker } from '../../support/docker.ts'
import { patient } from '../../support/patience.ts'
import { breaksAndMends, SteadyJobs } from '../support/broken-release.ts'
import { runJob } from '../support/client.ts'
import { containerEndpoint, startContainerServer } from '../support/containers.ts'

const WORKER = `import runpod
runpod.serverless.start({"handler": lambda job: {}})
`

describe('a release that crashes in containers under steady load', {
  skip: noDocker,
  timeout: patient(240_000),
}, () => {
  test('fails no job, and one call undoes it', async () => {
    const server = await startContainerServer()
    const settings = { workersMax: 3, idleTimeout: 60 }
    const id = await containerEndpoint(server, { words: ['python3', '-u', '-c', WORKER], settings })
    await runJob(server, id, {})
    const jobs = new SteadyJobs(server, id, 500)
    const args = JSON.stringify({ cmd: ['python3', 'missing.py'] })
    await breaksAndMends(server, id, { args, cause: /missing\.py|exited with code 2/ })
    await jobs.allDone()
  })
})
