/** The longest that `RUNPOD_INIT_TIMEOUT` can say. */
export const MAX_INIT_S = 86_400

/**
 * How long a worker with these variables may take until it asks for its first job, or is well for the first time: its
 * `RUNPOD_INIT_TIMEOUT`, in seconds.
 * @param usualMs where they do not say
 */
export function initTimeoutMs(env: Readonly<Record<string, string>>, usualMs: number): number {
  const text = env.RUNPOD_INIT_TIMEOUT
  return text !== undefined && isInitTimeout(text) ? Number(text) * 1000 : usualMs
}

/** Whether this can be the value of `RUNPOD_INIT_TIMEOUT`. */
export function isInitTimeout(text: string): boolean {
  return /^\d{1,6}$/.test(text) && Number(text) >= 1 && Number(text) <= MAX_INIT_S
}
