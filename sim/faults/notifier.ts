import type { Notifier } from '../../src/ports/notifier.ts'
import { createNotifier } from '../../src/system/coordination/notifier.ts'
import type { Life } from '../life.ts'
import type { World } from '../world.ts'

/**
 * The notifier of one run of the server. Notifications are lost, late or doubled with the
 * probabilities of the world's faults.
 */
export function createFaultyNotifier(world: World, life: Life, run: number): Notifier {
  const notifier = createNotifier({ onError: error => world.report(`a listener threw ${error}`) })
  const random = world.random(`notifier ${run}`)
  return {
    subscribe: (topic, listener) => notifier.subscribe(topic, listener),
    publish(topic) {
      const { lostWake, lateWake, doubledWake } = world.faults
      const roll = random.fraction()
      if (roll < lostWake) {
        world.count('lost wake-ups')
        return
      }
      if (roll < lostWake + lateWake) {
        world.count('late wake-ups')
        life.after(random.int(1, 3_000), () => notifier.publish(topic))
        return
      }
      notifier.publish(topic)
      if (roll < lostWake + lateWake + doubledWake) life.after(random.int(0, 500), () => notifier.publish(topic))
    },
  }
}
