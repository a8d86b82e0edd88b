/**
 * A function that caches its last result, for texts that most requests share, such as the host.
 * @param find a pure function
 */
export function cacheLast<Found>(find: (text: string) => Found): (text: string) => Found {
  let latest: { readonly text: string; readonly found: Found } | null = null
  return text => {
    if (latest?.text !== text) latest = { text, found: find(text) }
    return latest.found
  }
}
