import type { Leader } from '../../src/ports/leader.ts'
import type { World } from '../world.ts'

/** A leader that sometimes cannot confirm that it leads. No other server takes the lead in the meantime. */
export function createFaultyLeader(world: World): Leader {
  return {
    isLeader: () => world.leading,
    async confirm() {
      // A change that belongs to something that has happened already is not made.
      if (!world.leading) world.disturbances += 1
      return world.leading
    },
    watch: changed => world.watchLead(leading => changed(leading ? 'active' : 'unsure', null)),
  }
}
