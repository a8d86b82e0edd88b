import { driverContract } from './driver.ts'
import { openMachine } from './driver-machine.ts'

driverContract('process', async () => {
  const machine = await openMachine()
  let driver = machine.driver()
  return {
    notifier: machine.notifier,
    get driver() {
      return driver
    },
    spec: (behavior, changes) => machine.spec(behavior, changes),
    sharesPorts: true,
    answers: true,
    unusable: { image: 'registry.example.org/some/image:1', args: '' },
    ready: async worker => void (await machine.life(worker)),
    asked: worker => machine.asked(worker),
    frozen: async worker => machine.frozen(worker),
    responds: worker => machine.responds(worker),
    restart: async () => {
      driver.close()
      driver = machine.driver()
      return driver
    },
    close: machine.close,
  }
})
