/** How many seeds the simulator runs in tests. A seed takes some seconds; `.ci/run` has thirty. */
export const SIMULATED_SEEDS = Number(process.env.RUNYARD_SEEDS ?? 3)
