/** Differences between two configurations, member by member. */
import { type Body, isObject } from './body.ts'
import { SIMPLE_NAMES, simpleField } from './simple-fields.ts'

/** One member that differs; a variable is `env.NAME`. Null for a missing value. */
export interface Difference {
  readonly field: string
  readonly old: string | null
  readonly new: string | null
}

/** Members of a configuration that workers do not see: a change of them creates no release. */
const UNSEEN: ReadonlySet<string> = new Set([
  ...['name', 'workers', 'scaling', 'browserUrl'],
  ...SIMPLE_NAMES.filter(name => !simpleField(name).isSeen),
])

/** All members that differ, in the order of the configurations. */
export function differences(before: Body, after: Body): readonly Difference[] {
  const [old, now] = [new Map(listLeaves(before)), new Map(listLeaves(after))]
  return [...new Set([...old.keys(), ...now.keys()])]
    .map(field => ({ field, old: old.get(field) ?? null, new: now.get(field) ?? null }))
    .filter(one => one.old !== one.new)
}

/** The members of a configuration by their paths, as texts; empty ones are left out. */
export function listLeaves(body: Body, above = ''): readonly (readonly [string, string])[] {
  return Object.entries(body).flatMap(([name, value]) => {
    const path = above + name
    if (isObject(value)) return listLeaves(value, `${path}.`)
    // A variable without a value counts as a member.
    const text = valueText(value) ?? (above === 'env.' ? '' : null)
    return text === null ? [] : [[path, text] as const]
  })
}

/** A value as people read it; null for a missing one. */
export function valueText(value: unknown): string | null {
  if (value === null || value === undefined || value === '') return null
  if (Array.isArray(value)) return value.map(item => (isObject(item) ? cpuText(item) : String(item))).join(', ') || null
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

function cpuText(item: Readonly<Record<string, unknown>>): string {
  return 'vcpuCount' in item ? `${item.id} with ${item.vcpuCount} vCPUs` : JSON.stringify(item)
}

/** True for a change that workers see, which creates a release. */
export function makesRelease(changed: readonly Pick<Difference, 'field'>[]): boolean {
  return changed.some(({ field }) => !UNSEEN.has(field.split('.')[0]!))
}

/** Fields that two changes of the same configuration set to different values. */
export function findConflicts(mine: readonly Difference[], theirs: readonly Difference[]): readonly string[] {
  const values = new Map(theirs.map(one => [one.field, one.new]))
  return mine.filter(one => values.has(one.field) && values.get(one.field) !== one.new).map(one => one.field)
}
