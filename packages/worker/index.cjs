// The one entry of both module systems, so that both see the same worker. It awaits nothing: require()
// cannot wait. The repository runs on its sources where Node strips types and can require() them; else,
// and packed, on what is built.
const { existsSync } = require('node:fs')
const { join } = require('node:path')

const readsSources = Boolean(process.features.typescript && process.features.require_module)

module.exports =
  readsSources && existsSync(join(__dirname, 'src')) ? require('./src/index.ts') : require('./dist/index.js')
