import { ENDPOINT_DEFAULTS, type Endpoint, type EndpointType, withDefaults } from '../../core/endpoints/endpoint.ts'
import { TEMPLATE_DEFAULTS } from '../../core/endpoints/template.ts'
import { type EndpointId, isEndpointId, type OwnerId } from '../../core/ids.ts'
import { WorkerStartError } from '../../core/workers/start-failure.ts'
import type { Driver } from '../../ports/driver.ts'
import type { Store } from '../../ports/store/store.ts'
import type { Endpoints } from './endpoints.ts'
import type { Templates } from './templates.ts'

/** What {@link ensureFolderEndpoint} uses. */
export interface FolderParts {
  readonly store: Store
  readonly driver: Pick<Driver, 'check'>
  readonly endpoints: Endpoints
  readonly templates: Templates
}

/** A folder whose handler or server runs in workers. */
export interface WorkerFolder {
  /** What its endpoint is named after. */
  readonly name: string
  /** Absolute path. */
  readonly path: string
  /** Name of the images that are built from it. */
  readonly repository: string
  /** Type of its endpoint. */
  readonly type: EndpointType
  /** Tag of the image that was built now; null to run the folder as it is, in processes. */
  readonly tag: string | null
}

/**
 * The endpoint that runs the handler or server in a folder. The first call creates a template and an endpoint, both named after the
 * folder; the id of the endpoint is the name's letters and digits where that id is free. Later calls find them again, with
 * later changes kept; another image or type makes a new release, whose workers replace those of the old one.
 * @throws AppError `invalid` with what is wrong with the folder, `conflict` when it gets another type and has unfinished jobs
 */
export async function ensureFolderEndpoint(
  parts: FolderParts,
  owner: OwnerId,
  { name, path, repository, type, tag }: WorkerFolder,
): Promise<Endpoint> {
  const { store, driver, endpoints, templates } = parts
  // The person who starts the server is the operator, who may choose folders of the machine.
  const by = { owner, operator: true }
  const folder = `dir:${path}`
  const image = tag === null ? folder : `${repository}:${tag}`
  const isOurs = (known: string) => known === folder || known.startsWith(`${repository}:`)
  const known = (await store.templates.list(owner)).find(template => template.isServerless && isOurs(template.image))
  const failure = tag === null ? await driver.check(folder, known?.args ?? '', type) : null
  if (failure !== null) throw new WorkerStartError(failure)
  const template =
    known ??
    (await templates.create(by, {
      ...TEMPLATE_DEFAULTS,
      name: await freeName(templates, owner, name),
      image,
      volumeGb: 0,
      diskGb: tag === null ? 1 : CONTAINER_DISK_GB,
      isServerless: true,
    }))
  if (template.image !== image) await templates.update(by, template.id, { image })
  const existing = (await store.endpoints.list(owner)).find(({ templateId }) => templateId === template.id)
  if (existing !== undefined) return existing.type === type ? existing : changeType(endpoints, existing, type)
  const compute = { kind: 'cpu', configs: [{ flavor: 'cpu3g', vcpuCount: 2 }] } as const
  return endpoints.create(by, withDefaults({ name, compute, type }), template.id, idFromName(name))
}

/** Disk of a container worker of a folder, in GB. */
const CONTAINER_DISK_GB = 10

function changeType(endpoints: Endpoints, { owner, id }: Endpoint, type: EndpointType): Promise<Endpoint> {
  return endpoints.update({ owner, operator: true }, id, { type, scaler: ENDPOINT_DEFAULTS.scaler[type] })
}

async function freeName(templates: Templates, owner: OwnerId, name: string): Promise<string> {
  for (let number = 1; ; number += 1) {
    const candidate = number === 1 ? name : `${name}-${number}`
    if ((await templates.findByName(owner, candidate)) === null) return candidate
  }
}

function idFromName(name: string): EndpointId | undefined {
  const id = name.toLowerCase().replaceAll(/[^a-z0-9]/g, '')
  return isEndpointId(id) ? id : undefined
}
