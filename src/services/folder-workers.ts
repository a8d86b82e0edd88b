import { type Endpoint, withDefaults } from '../core/endpoint.ts'
import { type EndpointId, isEndpointId, type OwnerId } from '../core/ids.ts'
import { TEMPLATE_DEFAULTS } from '../core/template.ts'
import type { Store } from '../ports/store.ts'
import type { Endpoints } from './endpoints.ts'
import type { Templates } from './templates.ts'

/** What {@link ensureFolderEndpoint} uses. */
export interface FolderParts {
  readonly store: Store
  readonly endpoints: Endpoints
  readonly templates: Templates
}

/**
 * The endpoint that runs the handler in a folder. The first call makes a template and an endpoint, both named after the
 * folder; the endpoint's id is the name's letters and digits where that id is free. Later calls find them again, with
 * whatever was changed since.
 * @param path absolute path of the folder
 * @throws AppError `invalid` with what is wrong with the folder
 */
export async function ensureFolderEndpoint(
  parts: FolderParts,
  owner: OwnerId,
  path: string,
  name: string,
): Promise<Endpoint> {
  const { store, endpoints, templates } = parts
  const image = `dir:${path}`
  const known = (await store.templates.list(owner)).find(template => template.image === image && template.isServerless)
  const template =
    known ??
    (await templates.create(owner, {
      ...{ ...TEMPLATE_DEFAULTS, name: await freeName(templates, owner, name), image, diskGb: 1, volumeGb: 0 },
      isServerless: true,
    }))
  const existing = (await store.endpoints.list(owner)).find(({ templateId }) => templateId === template.id)
  if (existing !== undefined) return existing
  const compute = { kind: 'cpu', configs: [{ flavor: 'cpu3g', vcpuCount: 2 }] } as const
  return endpoints.create(owner, withDefaults({ name, compute }), template.id, idFromName(name))
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
