import sdk from './index.cjs'

export const { log, start, version } = sdk
