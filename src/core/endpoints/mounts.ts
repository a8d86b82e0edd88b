/** The mounts of a worker of RunPod's SDK 2.0, which its variable RUNPOD_MOUNTS lists for the SDK. */

/** The variable with the mounts. */
export const MOUNTS = 'RUNPOD_MOUNTS'

/**
 * The mounts of a worker with the path at which it sees its network volume here; null for a text that is none, of
 * which the worker itself complains.
 */
export function placedMounts(text: string | undefined, volumePath: string): string | null {
  try {
    const mounts = JSON.parse(text ?? '') as unknown
    if (!Array.isArray(mounts)) return null
    const placed = mounts.map((mount: unknown) => {
      const isNetwork = typeof mount === 'object' && mount !== null && 'kind' in mount && mount.kind === 'network'
      return isNetwork ? { ...mount, path: volumePath } : mount
    })
    return JSON.stringify(placed)
  } catch {
    return null
  }
}
