export { log } from './log.ts'
export { start } from './start.ts'
export type { Context, Handler, Job, StartOptions } from './types.ts'
export { version } from './version.ts'
