/**
 * Removes the hook of Node's test runner that follows each promise, a quarter of the processor time of tests without
 * sockets, whose processes load this first. The runner uses it to find the test that declares another one, or that an
 * error belongs to. It still follows tests, which are resources too; a late error fails the file and is reported
 * without the name of its test.
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

// The runner makes its only hook when the first test is declared.
asyncHooks.createHook = ({ init }) => {
  noteTest = init
  asyncHooks.createHook = createHook
  const hook = { enable: () => hook, disable: () => hook }
  return hook
}
