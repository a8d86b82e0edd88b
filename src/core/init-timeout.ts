const MAX_INIT_S = 86_400

/**
 * How long a worker with these variables may take until it asks for its first job, or is well for the first time: its
 * `RUNPOD_INIT_TIMEOUT`, in seconds.
 * @param usualMs where they do not say
 */
export function initTimeoutMs(env: Readonly<Record<string, string>>, usualMs: number): number {
  const text = env.RUNPOD_INIT_TIMEOUT ?? ''
  const seconds = /^\d{1,6}$/.test(text) ? Number(text) : 0
  return seconds >= 1 && seconds <= MAX_INIT_S ? seconds * 1000 : usualMs
}
