/** Maximum value of `RUNPOD_INIT_TIMEOUT`, in seconds. */
export const MAX_INIT_S = 86_400

/**
 * Longest time until a worker with these variables asks for its first job or is healthy for the first time, in
 * milliseconds: its `RUNPOD_INIT_TIMEOUT`.
 * @param usualMs the time without that variable
 */
export function initTimeoutMs(env: Readonly<Record<string, string>>, usualMs: number): number {
  const text = env.RUNPOD_INIT_TIMEOUT
  return text !== undefined && isInitTimeout(text) ? Number(text) * 1000 : usualMs
}

/** True for a valid value of `RUNPOD_INIT_TIMEOUT`. */
export function isInitTimeout(text: string): boolean {
  return /^\d{1,6}$/.test(text) && Number(text) >= 1 && Number(text) <= MAX_INIT_S
}
