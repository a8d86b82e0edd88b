// The one entry of both module systems, so that both see the same worker. It awaits nothing: require() cannot wait.
// Packed, this package carries built CommonJS. In the repository nothing is built and Node strips the types itself.
const { existsSync } = require('node:fs')
const { join } = require('node:path')

module.exports = existsSync(join(__dirname, 'dist')) ? require('./dist/index.js') : require('./src/index.ts')
