/**
 * Conclusions from the requests of a worker, which depend on its SDK. The requests for jobs contain its name and
 * version (docs/internals/worker-protocol.md).
 */

/**
 * Meaning of a job that a worker no longer lists after it asked for more jobs.
 *
 * `lost`: it has forgotten the job. `lost_when_idle`: only if it lists no jobs at all, because jobs that wait
 * behind running ones are not listed. `lost_when_alone`: only for the one worker of an endpoint, because workers
 * with one folder share the list.
 */
export type Omission = 'lost' | 'lost_when_idle' | 'lost_when_alone'

/**
 * True if a worker on this SDK that reports no jobs has really forgotten all that it received: it sends one poll
 * after another, and reports a result before it releases the job. Older Python SDKs do not.
 */
export function reportsHeldJobs(sdk: string | null): boolean {
  return isOurs(sdk) || pythonVersion(sdk) >= 1_010_001
}

/** True if pings come from a separate process, so that they continue while a handler computes. */
export function pingsWhileItWorks(sdk: string | null): boolean {
  return pythonVersion(sdk) >= 1_007_011
}

/**
 * True if a job that the worker takes while others run begins only when one of those has ended. Such a worker also
 * ignores the stop of a job, so a job that it receives beside a cancelled one waits for that.
 */
export function beginsJobsLate(sdk: string | null): boolean {
  const version = pythonVersion(sdk)
  return version >= 1_007_001 && version < 1_009_001
}

/**
 * True if a worker on this SDK may ask for jobs while hooks of its program run. A program whose packages were
 * copied without their descriptions reports `unknown` in place of the version.
 */
export function mayRunHooks(sdk: string | null): boolean {
  return pythonVersion(sdk) >= 2_000_000 || sdk?.startsWith('RunPod-Python-SDK/unknown') === true
}

/**
 * True for an SDK that requests all jobs for which it has room in one take, so that its takes show its
 * concurrency.
 */
export function asksForAllAtOnce(sdk: string | null): boolean {
  return pythonVersion(sdk) >= 1_007_001
}

/** True for an SDK that may take single jobs beside a running one, whose result it sends while the take is open. */
export function sendsResultsDuringTakes(sdk: string | null): boolean {
  const version = pythonVersion(sdk)
  return isOurs(sdk) || (version > 0 && version < 1_007_001)
}

/**
 * True for an SDK that runs several jobs, the response to a take of one, one after another. Older ones lose them, and
 * SDK 2.0 hangs.
 */
export function takesJobsAhead(sdk: string | null): boolean {
  const version = pythonVersion(sdk)
  return version >= 1_007_002 && version < 2_000_000
}

/** See {@link Omission}. */
export function omissionMeaning(sdk: string | null): Omission {
  const version = pythonVersion(sdk)
  if (isOurs(sdk) || version >= 1_010_001) return 'lost'
  if (mayShareItsList(sdk)) return 'lost_when_alone'
  return version >= 1_007_000 || version === 0 ? 'lost_when_idle' : 'lost'
}

/**
 * True if a worker on this SDK keeps the list of its jobs in a file of its working folder. If workers share the
 * folder, each lists what the last one wrote.
 */
export function mayShareItsList(sdk: string | null): boolean {
  const version = pythonVersion(sdk)
  return version >= 1_007_012 && version <= 1_010_000
}

function isOurs(sdk: string | null): boolean {
  return sdk?.startsWith('Runyard-Worker-SDK/') === true
}

/** 1.12.3 as 1_012_003; 0 for another SDK. */
function pythonVersion(sdk: string | null): number {
  const [, major, minor, patch] = /^RunPod-Python-SDK\/(\d{1,3})\.(\d{1,3})\.(\d{1,3})/.exec(sdk ?? '') ?? []
  return major === undefined ? 0 : Number(major) * 1_000_000 + Number(minor) * 1_000 + Number(patch)
}
