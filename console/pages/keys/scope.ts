/** The rights of a key: in words, and as the draft of a form. */
import type { KeyScope } from '../../client/api-types.d.ts'
import { plural } from '../../format.ts'

/** No right, the right to read, or also the right to change. */
export type Level = 'none' | 'read' | 'write'

/** A scope while it is edited. Members that the chosen kind does not use stay for a later choice. */
export interface ScopeDraft {
  readonly type: KeyScope['type']
  readonly management: Level
  /** One level for all endpoints, or `each`. */
  readonly jobs: Level | 'each'
  readonly byEndpoint: Readonly<Record<string, Level>>
  /** On the metrics of the whole server; only for keys of the operator. */
  readonly metrics: 'none' | 'read'
  /** On files of network volumes over S3: one level for all volumes, or `each`. */
  readonly files: Level | 'each'
  readonly byVolume: Readonly<Record<string, Level>>
  /** Models that it may call by their names, one a line. */
  readonly models: string
}

/** The scope that most programs need: they submit jobs and read results. */
export const NEW_SCOPE: ScopeDraft = {
  type: 'restricted',
  management: 'none',
  jobs: 'write',
  byEndpoint: {},
  metrics: 'none',
  files: 'none',
  byVolume: {},
  models: '',
}

/** Number of endpoints that are named; the others are counted. */
const NAMED = 3

/** A scope for a form. */
export function draftFromScope(scope: KeyScope): ScopeDraft {
  if (scope.type !== 'restricted') return { ...NEW_SCOPE, type: scope.type }
  const { type, management, jobs, metrics = 'none', files = 'none', models = [] } = scope
  const ofFiles = typeof files === 'string' ? { files, byVolume: {} } : { files: 'each' as const, byVolume: files }
  const rest = { type, management, metrics, models: models.join('\n'), ...ofFiles }
  return typeof jobs === 'string' ? { ...rest, jobs, byEndpoint: {} } : { ...rest, jobs: 'each', byEndpoint: jobs }
}

/** The scope of a form. @param isKnown true for an existing endpoint: a key cannot name others */
export function scopeFromDraft(
  { type, management, jobs, byEndpoint, metrics, files, byVolume, models }: ScopeDraft,
  isKnown: (endpoint: string) => boolean,
): KeyScope {
  if (type !== 'restricted') return { type }
  const ofFiles = files === 'none' ? {} : { files: files === 'each' ? byVolume : files }
  const names = modelNames(models)
  const ofModels = names.length === 0 ? {} : { models: [...names] }
  const otherRights = { ...(metrics === 'none' ? {} : { metrics }), ...ofFiles, ...ofModels }
  if (jobs !== 'each') return { type, management, jobs, ...otherRights }
  const endpointLevels = Object.entries(byEndpoint).filter(([id, level]) => level !== 'none' && isKnown(id))
  return { type, management, jobs: Object.fromEntries(endpointLevels), ...otherRights }
}

/** The names in the field of models: one a line, or separated by commas as on the command line. */
export function modelNames(text: string): readonly string[] {
  const names = text.split(/[\n,]/).map(name => name.trim())
  return [...new Set(names.filter(name => name !== ''))]
}

/** A scope in words, such as `reads management; jobs of images, w`. */
export function describeScope(scope: KeyScope, endpointName: (endpoint: string) => string): string {
  if (scope.type === 'all') return 'everything'
  if (scope.type === 'read-only') return 'reads everything'
  const { management, jobs, metrics, files = 'none', models = [] } = scope
  const parts = [
    ...(management === 'none' ? [] : [management === 'read' ? 'reads management' : 'manages']),
    ...(typeof jobs === 'string' ? describeLevel(jobs, 'all endpoints') : describeJobs(jobs, endpointName)),
    ...(models.length === 0
      ? []
      : [
          `models ${models.slice(0, NAMED).join(', ')}${models.length > NAMED ? ` and ${models.length - NAMED} more` : ''}`,
        ]),
    ...(metrics === 'read' ? ['reads the metrics of the server'] : []),
    ...fileWords(files),
  ]
  return parts.length === 0 ? 'nothing' : parts.join('; ')
}

function describeJobs(
  jobs: Readonly<Record<string, Level>>,
  endpointName: (endpoint: string) => string,
): readonly string[] {
  return (['write', 'read'] as const).flatMap(level => {
    const names = Object.keys(jobs)
      .filter(id => jobs[id] === level)
      .map(endpointName)
    if (names.length === 0) return []
    const unnamedCount = names.length - NAMED
    return describeLevel(
      level,
      `${names.slice(0, NAMED).join(', ')}${unnamedCount > 0 ? ` and ${unnamedCount} more` : ''}`,
    )
  })
}

function fileWords(files: Level | Readonly<Record<string, Level>>): readonly string[] {
  const levels = typeof files === 'string' ? [files] : Object.values(files)
  const volumes = typeof files === 'string' ? 'all volumes' : plural(levels.length, 'volume')
  if (levels.includes('write')) return [`files of ${volumes}`]
  return levels.includes('read') ? [`reads files of ${volumes}`] : []
}

function describeLevel(level: Level, whose: string): readonly string[] {
  if (level === 'none') return []
  return [level === 'write' ? `jobs of ${whose}` : `reads jobs of ${whose}`]
}
