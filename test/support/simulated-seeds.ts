/** Number of simulator seeds in tests. A seed takes some seconds; `.ci/run` runs four. */
export const SIMULATED_SEEDS = Number(process.env.RUNYARD_SEEDS ?? 3)
