/** Does for imports what `preload.cjs` does, on a Node without hooks in the thread of the program. */
const NAME = '@runyard/worker'

export async function resolve(specifier, context, next) {
  try {
    return await next(specifier, context)
  } catch (error) {
    const isMissing = error.code === 'ERR_MODULE_NOT_FOUND' && String(error.message).includes(`'${NAME}'`)
    if (specifier !== NAME || !isMissing) throw error
    return { url: new URL('index.js', import.meta.url).href, format: 'module', shortCircuit: true }
  }
}
