import { describe, test } from 'node:test'
import { noKubernetes } from '../support/kubernetes.ts'
import { openPodMachine } from '../support/pods.ts'
import { sharedCluster } from '../support/shared-cluster.ts'
import { type Behavior, driverContract } from './driver.ts'

const SERVE = `for (const port of [process.env.PORT, process.env.PORT_HEALTH])
  require('node:http').createServer((_, response) => response.end()).on('error', () => {}).listen(port)
setTimeout(() => console.log('ready'), 300)`

const WORDS: Record<Behavior, readonly string[]> = {
  obedient: ['sh', '-c', 'trap "exit 0" TERM; echo ready; while :; do sleep 0.05; done'],
  stubborn: ['sh', '-c', 'trap "echo asked" TERM; trap "echo later" WINCH; echo ready; while :; do sleep 0.05; done'],
  failing: ['sh', '-c', 'exit 3'],
  serving: ['node', '-e', SERVE],
}

if (noKubernetes === false)
  // The runner finds the file of a test by where it is declared.
  describe('with the programs of Kubernetes', () =>
    driverContract(
      'Kubernetes',
      async () => {
        const machine = openPodMachine(await sharedCluster())
        let driver = machine.driver()
        return {
          notifier: machine.notifier,
          get driver() {
            return driver
          },
          spec: (behavior, changes) => machine.spec(WORDS[behavior], changes),
          sharesPorts: false,
          answers: true,
          unusable: { image: 'Not an image', args: '' },
          ready: worker => machine.said(worker, 'ready'),
          asked: worker => machine.asked(worker),
          frozen: async () => false,
          responds: worker => machine.responds(worker),
          restart: async () => {
            await driver.close()
            driver = machine.driver()
            return driver
          },
          close: machine.close,
          platform: machine.platform,
        }
      },
      { freezes: false, places: true, waits: true },
    ))
else test('the Kubernetes driver', { skip: noKubernetes })
