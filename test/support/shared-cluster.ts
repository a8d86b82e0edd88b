/** The one cluster of the test files of a process: each costs eight seconds of a processor until it takes pods. */
import { after } from 'node:test'
import { openCluster, type TestCluster } from './kubernetes.ts'

let opened: Promise<TestCluster> | undefined

/**
 * The cluster of this process, which starts at the first call and ends with the last test. A file that uses it takes
 * its pods away again; the GPUs of the node are those that the previous file gave it.
 */
export function sharedCluster(): Promise<TestCluster> {
  opened ??= openCluster()
  return opened
}

after(async () => {
  const cluster = await opened?.catch(() => undefined)
  await cluster?.stop()
})
