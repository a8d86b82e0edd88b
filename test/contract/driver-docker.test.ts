import { test } from 'node:test'
import { noDocker, openDockerMachine } from '../support/docker.ts'
import { type Behavior, driverContract } from './driver.ts'

const SCRIPTS: Record<Behavior, string> = {
  obedient: 'trap "exit 0" TERM; echo ready; while :; do sleep 0.05; done',
  stubborn: 'trap "echo asked" TERM; trap "echo later" 28; echo ready; while :; do sleep 0.05; done',
  failing: 'exit 3',
  serving: 'cd /; for p in $PORT $PORT_HEALTH; do python3 -m http.server $p & done; echo ready; wait',
}

if (noDocker === false) {
  driverContract('Docker', async () => {
    const machine = await openDockerMachine()
    let driver = machine.driver()
    return {
      notifier: machine.notifier,
      get driver() {
        return driver
      },
      spec: (behavior, changes) => machine.spec(['sh', '-c', SCRIPTS[behavior]], changes),
      sharesPorts: false,
      answers: true,
      unusable: { image: 'Not an image', args: '' },
      ready: worker => machine.said(worker, 'ready'),
      asked: worker => machine.asked(worker),
      frozen: worker => machine.frozen(worker),
      responds: worker => machine.responds(worker),
      restart: async () => {
        await driver.close()
        driver = machine.driver()
        return driver
      },
      close: machine.close,
    }
  })
} else test('the Docker driver', { skip: noDocker })
