/** Results of handlers of the official SDK, by the names that `fixtures/python-worker` knows, and their outcomes. */

/** A result, the state of its job, and the output and error of that; undefined for none. */
export type Returned = readonly [what: string, status: string, output: unknown, error: unknown]

/** Each kind of result. */
export const RETURNED: readonly Returned[] = [
  ['error dict', 'FAILED', { rest: 1 }, '{"code": 7}'],
  ['error text', 'FAILED', undefined, 'no'],
  ['error empty', 'COMPLETED', { rest: 1 }, undefined],
  ['empty', 'COMPLETED', undefined, undefined],
  ['null', 'COMPLETED', null, undefined],
  ['text', 'COMPLETED', 'wörld 🌍', undefined],
  ['bool', 'COMPLETED', false, undefined],
  ['list', 'COMPLETED', [1, 'two', null], undefined],
]
