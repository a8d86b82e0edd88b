import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collectNow = runInNewContext('gc') as () => void

/** Frees all objects that nothing keeps. Weak references keep theirs until the end of a turn of the event loop. */
export async function collect(): Promise<void> {
  for (let turn = 0; turn < 3; turn += 1) {
    await new Promise<void>(resolve => setImmediate(resolve))
    collectNow()
  }
}
