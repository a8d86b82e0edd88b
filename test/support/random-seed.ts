/** The seed of random tests: a new one in each run, unless RUNYARD_TEST_SEED repeats one. */
export const randomSeed = Number(process.env.RUNYARD_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31))
