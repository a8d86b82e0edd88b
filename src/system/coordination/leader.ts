import type { Leader } from '../../ports/leader.ts'

/** The leader of an installation with one server: always this one. */
export const singleLeader: Leader = { isLeader: () => true, confirm: async () => true, watch: () => () => {} }
