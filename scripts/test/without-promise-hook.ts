/**
 * Loaded before the runner of Node in processes of tests without sockets: takes from it the hook that follows each promise, a quarter of
 * their processor time. The runner needs it to know which test declares another one and which one an error is of. Of tests, which are
 * resources too, it still hears; an error that comes later fails the file and is reported without the name of its test.
 */
import asyncHooks, { type HookCallbacks } from 'node:async_hooks'

const { AsyncResource, createHook } = asyncHooks
let noteTest: HookCallbacks['init']

asyncHooks.AsyncResource = class extends AsyncResource {
  constructor(...args: ConstructorParameters<typeof AsyncResource>) {
    super(...args)
    noteTest?.(this.asyncId(), args[0], 0, this)
  }
}

// The runner makes one hook, when the first test is declared.
asyncHooks.createHook = ({ init }) => {
  noteTest = init
  asyncHooks.createHook = createHook
  const hook = { enable: () => hook, disable: () => hook }
  return hook
}
