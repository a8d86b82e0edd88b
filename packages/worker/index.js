// Packed, this package carries built JavaScript. In the repository nothing is built and Node strips the types itself.
import { existsSync } from 'node:fs'

const built = existsSync(new URL('./dist/index.js', import.meta.url))
const sdk = await (built ? import('./dist/index.js') : import('./src/index.ts'))

export const { log, start, version } = sdk
