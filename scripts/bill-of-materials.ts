/**
 * The bill of materials of the published program in the form of CycloneDX: the packages that npm installs beside it,
 * and those whose files are part of it.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { licenseMistake } from './licenses.ts'

const ROOT = dirname(import.meta.dirname)
/** Property with which npm marks packages of development. */
const DEVELOPMENT = 'cdx:npm:package:development'

interface Component {
  readonly 'bom-ref': string
  readonly type: string
  readonly name: string
  readonly version: string
  readonly scope?: string
  readonly purl?: string
  readonly properties?: readonly { readonly name: string; readonly value: string }[]
  readonly licenses?: readonly { readonly license?: { readonly id?: string }; readonly expression?: string }[]
}

interface Dependency {
  readonly ref: string
  readonly dependsOn?: readonly string[]
}

/** The fields of a CycloneDX document that this file reads. */
export interface Bill {
  readonly bomFormat: string
  readonly specVersion: string
  readonly metadata: { readonly component: Component }
  readonly components: readonly Component[]
  readonly dependencies: readonly Dependency[]
}

/**
 * The bill of the published program, which is the same for the same lock file.
 * @param bundled the packages whose files are part of the program, by their folders below the root
 * @throws where a package has a license that is not permitted
 */
export function billOfMaterials(bundled: readonly string[]): Bill {
  const npm = ['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only', '--loglevel=error']
  const all = JSON.parse(execFileSync('npm', npm, { cwd: ROOT, encoding: 'utf8', maxBuffer: 64 << 20 })) as Bill
  return publishedBill(all, new Set(bundled.map(packageRef)), packageRef('packages/worker'))
}

/** The part of a complete bill that is about the published program. */
export function publishedBill(all: Bill, bundled: ReadonlySet<string>, worker: string): Bill {
  const { component } = all.metadata
  const published = all.components.filter(one => bundled.has(one['bom-ref']) || !isDevelopment(one)).map(asPublished)
  const components = [...published.filter(one => one['bom-ref'] !== worker), ownComponent(worker)]
  const refs = new Set([component['bom-ref'], ...components.map(one => one['bom-ref'])])
  const missing = [...bundled].filter(ref => !refs.has(ref))
  if (missing.length > 0) throw new Error(`not in the lock file: ${missing.join(', ')}`)
  const mistakes = components.flatMap(({ name, licenses }) => {
    const license = licenses?.[0]?.license?.id ?? licenses?.[0]?.expression
    return licenseMistake({ name, license, onlyForTests: false }) ?? []
  })
  if (mistakes.length > 0) throw new Error(mistakes.join('; '))
  return {
    bomFormat: all.bomFormat,
    specVersion: all.specVersion,
    // The file has no serial number and no time, so that the same sources make the same file.
    metadata: { component: { ...component, name: 'runyard', type: 'application' } },
    components,
    dependencies: all.dependencies
      .filter(({ ref }) => refs.has(ref))
      .map(({ ref, dependsOn = [] }) => ({ ref, dependsOn: dependsOn.filter(one => refs.has(one)) })),
  }
}

/** The component without its mark as a package of development, which it is only in this repository. */
function asPublished({ properties = [], ...rest }: Component): Component {
  return { ...rest, properties: properties.filter(({ name }) => name !== DEVELOPMENT) }
}

/** npm leaves the packages of this repository out. */
function ownComponent(ref: string): Component {
  const at = ref.lastIndexOf('@')
  const [name, version] = [ref.slice(0, at), ref.slice(at + 1)]
  return {
    'bom-ref': ref,
    type: 'library',
    name,
    version,
    scope: 'required',
    purl: `pkg:npm/${encodeURIComponent(name).replace('%2F', '/')}@${version}`,
    licenses: [{ license: { id: 'Apache-2.0' } }],
  }
}

function isDevelopment({ properties = [] }: Component): boolean {
  return properties.some(({ name, value }) => name === DEVELOPMENT && value === 'true')
}

function packageRef(folder: string): string {
  const { name, version } = JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8')) as Component
  return `${name}@${version}`
}
