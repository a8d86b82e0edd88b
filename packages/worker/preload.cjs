// A server preloads this in its Node workers: it gives them this package where their folder has none. It is not
// part of the published package.
const module_ = require('node:module')
const { join } = require('node:path')
const { pathToFileURL } = require('node:url')

const NAME = '@runyard/worker'
const REQUIRED = join(__dirname, 'index.cjs')
const IMPORTED = pathToFileURL(join(__dirname, 'index.js')).href
const HERE = pathToFileURL(join(__dirname, '/')).href

/** Packages that this one uses where a worker has them: those of the worker, since its own folder is elsewhere. */
const OPTIONAL = ['aws4fetch', 'yauzl']

/** A broken package of the folder is not replaced: its error names a file. */
function isMissing(error) {
  const isUnfound = error.code === 'ERR_MODULE_NOT_FOUND' || error.code === 'MODULE_NOT_FOUND'
  return isUnfound && String(error.message).includes(`'${NAME}'`)
}

function resolve(specifier, context, next) {
  if (specifier === NAME) {
    try {
      return next(specifier, context)
    } catch (error) {
      if (!isMissing(error)) throw error
      const isRequired = context.conditions.includes('require')
      return isRequired
        ? { url: pathToFileURL(REQUIRED).href, format: 'commonjs', shortCircuit: true }
        : { url: IMPORTED, format: 'module', shortCircuit: true }
    }
  }
  if (OPTIONAL.includes(specifier) && context.parentURL?.startsWith(HERE) && process.argv[1] !== undefined)
    return next(specifier, { ...context, parentURL: pathToFileURL(process.argv[1]).href })
  return next(specifier, context)
}

if (module_.registerHooks !== undefined) module_.registerHooks({ resolve })
else {
  // Node 20, which a command of the user may start.
  module_.register?.('./preload-hooks.mjs', pathToFileURL(__filename))
  const find = module_._resolveFilename
  module_._resolveFilename = function (request, ...rest) {
    try {
      return find.call(this, request, ...rest)
    } catch (error) {
      if (request !== NAME || !isMissing(error)) throw error
      return REQUIRED
    }
  }
}
