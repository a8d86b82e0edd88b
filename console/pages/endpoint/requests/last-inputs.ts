/** The last inputs of endpoints, in this browser until a sign-out. Inputs only: no keys, no addresses of webhooks. */

import { INPUTS } from '../../../client/session.ts'

/** Limit of inputs of one endpoint. */
const MAX_INPUTS = 10
/** Limit of endpoints with stored inputs; those that were called last. */
const MAX_ENDPOINTS = 20
/** Limit of characters of one input; longer ones are not stored. */
const MAX_CHARACTERS = 8_000

/** The used part of the storage of a browser. */
export type InputStorage = Pick<Storage, 'getItem' | 'setItem'>

/** The last inputs of an endpoint, the newest first. @param of the endpoint, or the endpoint and the kind of call */
export function lastInputs(of: string, storage: InputStorage = localStorage): readonly string[] {
  return read(storage)[of] ?? []
}

/** Stores an input as the newest of its endpoint. @param of as of {@link lastInputs} */
export function keepInput(of: string, input: string, storage: InputStorage = localStorage): void {
  const { [of]: previousInputs = [], ...otherLists } = read(storage)
  if (input.length > MAX_CHARACTERS) return
  const inputs = [input, ...previousInputs.filter(one => one !== input)].slice(0, MAX_INPUTS)
  const rest = Object.entries(otherLists).slice(0, MAX_ENDPOINTS - 1)
  try {
    storage.setItem(INPUTS, JSON.stringify(Object.fromEntries([[of, inputs], ...rest])))
  } catch {
    // The storage is full or forbidden: the page works without it.
  }
}

function read(storage: InputStorage): Readonly<Record<string, readonly string[]>> {
  try {
    const stored: unknown = JSON.parse(storage.getItem(INPUTS) ?? '{}')
    if (typeof stored !== 'object' || stored === null) return {}
    const lists = Object.entries(stored).map(([id, list]) => [
      id,
      Array.isArray(list) ? list.filter(one => typeof one === 'string') : [],
    ])
    return Object.fromEntries(lists)
  } catch {
    return {}
  }
}
