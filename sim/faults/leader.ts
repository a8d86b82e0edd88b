import type { Leader } from '../../src/ports/leader.ts'
import type { World } from '../world.ts'

/** A leader that, for a while, does not know whether it leads; nobody else takes the lead meanwhile. */
export function createFaultyLeader(world: World): Leader {
  return {
    isLeader: () => world.leading,
    async confirm() {
      // What was to be changed with something that has happened already stays as it was.
      if (!world.leading) world.disturbances += 1
      return world.leading
    },
    watch: changed => world.watchLead(leading => changed(leading ? 'active' : 'unsure', null)),
  }
}
