/** Releases in words. */

/** State of the rollout of the newest release. */
export interface RolloutFacts {
  readonly state: 'IN_PROGRESS' | 'STOPPED' | 'CANARY' | 'COMPLETE'
  readonly workersOnLatest: number
  readonly workersTotal: number
  readonly percentOnLatest: number
  readonly reason: string | null
  readonly workingVersion: number | null
  readonly canary: number | null
  /** Null unless the rollout was stopped because the release failed its jobs or requests. */
  readonly failures: object | null
}

/** Facts of a release that its sentence uses. */
interface ReleaseFacts {
  readonly version: number | null
  readonly restoredVersion: number | null
  readonly source: 'GIT_BUILD' | 'MANUAL'
  readonly diff: readonly { readonly field: string }[]
}

/** The origin of a release, in a sentence. */
export function describeRelease({ version, restoredVersion, source, diff }: ReleaseFacts): string {
  if (restoredVersion !== null) return `Rollback to version ${restoredVersion}`
  if (source === 'GIT_BUILD') return 'Built from a repository'
  if (version === 1) return 'Created'
  if (diff.length === 0) return 'Restart: the same configuration with new workers'
  const names = [...new Set(diff.map(({ field }) => field.split('.')[0]!))]
  return `Changed ${names.slice(0, 4).join(', ')}${names.length > 4 ? ' and more' : ''}`
}

/** The state of a rollout, in a sentence. */
export function rolloutSentence(version: number | null, rollout: RolloutFacts): string {
  const { state, workersOnLatest, workersTotal, workingVersion, canary, reason } = rollout
  const some = `${workersOnLatest} of ${workersTotal} workers run version ${version}`
  if (state === 'STOPPED') {
    const rest = workingVersion === null ? '' : ` Workers of version ${workingVersion} go on.`
    if (rollout.failures !== null) {
      return `Version ${version} fails clearly more than the last good one: no more workers of it start.${rest}`
    }
    return `Version ${version} does not work: no more workers of it start.${rest}`
  }
  if (state === 'CANARY') {
    return `Version ${version} is a canary with ${canary}% of the workers; version ${workingVersion} has the rest. ${some}.`
  }
  if (state === 'IN_PROGRESS') {
    return workersTotal === 0
      ? `Version ${version} has had no ready worker yet. The next workers run it.`
      : `${some}. The others end when they are replaced.`
  }
  // No older release has worked, so the newest is tried again and again.
  if (reason !== null) return `Version ${version} does not work, and no older version has worked.`
  if (workersTotal === 0) return `No worker runs. The next ones run version ${version}.`
  return workersTotal === 1
    ? `The one worker runs version ${version}.`
    : `All ${workersTotal} workers run version ${version}.`
}

/** A release with its requests and workers. Times are milliseconds, null without a request. */
export interface Traffic {
  readonly version: number
  readonly ended: number
  readonly failed: number
  readonly p50: number | null
  readonly p95: number | null
  readonly workers: number
}

interface ReleasesFacts {
  readonly endpointVersion: number | null
  readonly releases: readonly { readonly version: number | null; readonly workerCount: number }[]
  readonly rollout: RolloutFacts
}

/** Requests of a release, as the server counts them. */
interface Counted {
  readonly version: number
  readonly ended: number
  readonly failed: number
  readonly executionMs: { readonly p50: number | null; readonly p95: number | null }
}

/** The newest release, and those with requests or workers; the newest first. */
export function trafficRows(list: ReleasesFacts, counted: readonly Counted[]): readonly Traffic[] {
  const workers = new Map(list.releases.map(({ version, workerCount }) => [version, workerCount]))
  const requests = new Map(counted.map(one => [one.version, one]))
  const all = [...new Set([...workers.keys(), ...requests.keys()])].filter(version => version !== null)
  return all
    .map(version => {
      const { ended = 0, failed = 0, executionMs } = requests.get(version) ?? {}
      const { p50 = null, p95 = null } = executionMs ?? {}
      return { version, ended, failed, p50, p95, workers: workers.get(version) ?? 0 }
    })
    .filter(row => row.version === list.endpointVersion || row.ended > 0 || row.workers > 0)
    .sort((a, b) => b.version - a.version)
}

/** The role of a release in the rollout, in a word or two; null for a former one. */
export function releaseRole(version: number, { endpointVersion, rollout }: ReleasesFacts) {
  if (version === rollout.workingVersion) return { tone: 'good', word: 'last good' } as const
  if (version !== endpointVersion) return null
  if (rollout.state === 'CANARY') return { tone: 'wait', word: canaryWord(rollout) } as const
  if (rollout.state === 'STOPPED') return { tone: 'bad', word: 'stopped' } as const
  return rollout.state === 'IN_PROGRESS'
    ? ({ tone: 'busy', word: 'rolling out' } as const)
    : ({ tone: 'good', word: 'newest' } as const)
}

/** "Canary 20%": the share that was chosen, and not that of the present workers. */
export function canaryWord({ canary }: Pick<RolloutFacts, 'canary'>): string {
  return canary === null ? 'Canary' : `Canary ${canary}%`
}

/** The rule by which the rollout of a version stops, and the end of the stop. */
export function stopRule({ failures }: Pick<RolloutFacts, 'failures'>): string {
  return failures === null
    ? 'A rollout stops after three crashes without a ready worker, or when no worker can be started. Any new release ends the stop: a change that fixes it, a rollback, or a restart, which tries the same release again.'
    : 'A rollout stops when its release fails clearly more jobs or requests than the last good one, after 20 of them at the earliest. Any new release ends the stop. A promotion continues it, and its failures no longer count.'
}

/** Two versions such as `3..5`; null where the text has none. */
export function readVersions(text: string | null): readonly [number, number] | null {
  const [, old, now] = /^(\d{1,9})\.\.(\d{1,9})$/.exec(text ?? '') ?? []
  return old === undefined ? null : [Number(old), Number(now)]
}
