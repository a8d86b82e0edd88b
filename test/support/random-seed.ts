/** The seed of this run's random tests: another one each time, unless RUNYARD_TEST_SEED repeats one. */
export const randomSeed = Number(process.env.RUNYARD_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31))
