import sdk from './index.cjs'

export const { log, registerFitnessCheck, start, version } = sdk
