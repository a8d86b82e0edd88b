/**
 * Loaded before the runner of Node in each process of tests: takes from it the hook by which it knows which test made each promise. The
 * hook runs for every promise, a third of the processor time of tests without sockets. An error outside of a test still fails its
 * file; it is reported without the name of the test.
 */
import asyncHooks from 'node:async_hooks'

const { createHook } = asyncHooks
// The runner creates one hook, when the first test is declared.
asyncHooks.createHook = () => {
  asyncHooks.createHook = createHook
  const hook = { enable: () => hook, disable: () => hook }
  return hook
}
