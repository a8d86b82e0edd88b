import type { Caller } from '../../../core/accounts/permission.ts'
import type { Volume } from '../../../core/endpoints/volume.ts'
import type { RegistryId, VolumeId } from '../../../core/ids.ts'
import type { Page, PageRequest } from '../../../core/pages.ts'
import type { Registry } from '../../../core/secrets/registry.ts'
import { isAppWorker } from '../../../services/accounts/app-worker-keys.ts'
import type { Volumes } from '../../../services/endpoints/volumes.ts'
import type { ApiParts } from '../../parts.ts'
import { type RestRoute, route } from '../route.ts'
import {
  CreateGlobalVolume,
  CreateRegistry,
  CreateVolume,
  GlobalVolumeBody,
  GlobalVolumeList,
  RegistryBody,
  RegistryList,
  UpdateVolume,
  VolumeBody,
  VolumeList,
} from '../schemas/account.ts'
import { IdParam, PageQuery, pagination } from '../schemas/common.ts'

/** Routes of registry credentials. They are never shown. To replace one, delete it and save a new one. */
export function registryRoutes({ registries }: ApiParts): RestRoute[] {
  const tag = 'Registries'
  return [
    route(
      {
        method: 'get',
        path: '/v2/registries',
        operationId: 'listRegistries',
        tag,
        level: 'read',
        summary: 'The saved registry credentials of the caller',
        query: PageQuery,
        success: { status: 200, schema: RegistryList },
        problems: [400],
      },
      async ({ caller, query }) => {
        const { items, nextCursor } = await registries.list(caller.owner, query)
        return { registries: items.map(registryBody), pagination: pagination(nextCursor) }
      },
    ),
    route(
      {
        method: 'post',
        path: '/v2/registries',
        operationId: 'createRegistry',
        tag,
        level: 'write',
        summary: 'Saves a registry credential',
        body: { name: 'CreateRegistryRequest', shape: CreateRegistry },
        success: { status: 201, schema: RegistryBody },
        problems: [400],
      },
      async ({ caller, body }) => registryBody(await registries.create(caller.owner, body)),
    ),
    route(
      {
        method: 'get',
        path: '/v2/registries/{id}',
        operationId: 'getRegistry',
        tag,
        level: 'read',
        summary: 'One registry credential',
        params: IdParam,
        success: { status: 200, schema: RegistryBody },
        problems: [404],
      },
      async ({ caller, params }) => registryBody(await registries.find(caller.owner, params.id as RegistryId)),
    ),
    route(
      {
        method: 'delete',
        path: '/v2/registries/{id}',
        operationId: 'deleteRegistry',
        tag,
        level: 'write',
        summary: 'Removes a registry credential; templates that have it lose it',
        params: IdParam,
        success: { status: 204, schema: null },
        problems: [400, 404],
      },
      async ({ caller, params }) => registries.remove(caller.owner, params.id as RegistryId),
    ),
  ]
}

/** Body that changes a volume of either kind. */
const VOLUME_CHANGES = {
  shape: UpdateVolume,
  keywords: { minProperties: 1 },
  rules: [(_: unknown, sent: ReadonlySet<string>) => (sent.size === 0 ? ['$: must have at least one property'] : [])],
}

/** Routes of network volumes: folders of this host that workers of an endpoint share. */
export function volumeRoutes({ volumes }: ApiParts): RestRoute[] {
  const tag = 'Network volumes'
  const one = '/v2/network-volumes/{id}'
  return [
    route(
      {
        method: 'get',
        path: '/v2/network-volumes',
        operationId: 'listNetworkVolumes',
        tag,
        level: 'read',
        forApps: true,
        summary: 'The network volumes of the caller',
        query: PageQuery,
        success: { status: 200, schema: VolumeList },
        problems: [400],
      },
      async ({ caller, query }) => {
        const { items, nextCursor } = await listedFor(volumes, caller, query)
        return { networkVolumes: items.map(volumeBody), pagination: pagination(nextCursor) }
      },
    ),
    route(
      {
        method: 'post',
        path: '/v2/network-volumes',
        operationId: 'createNetworkVolume',
        tag,
        level: 'write',
        summary: 'Makes a network volume',
        body: { name: 'CreateNetworkVolumeRequest', shape: CreateVolume },
        success: { status: 201, schema: VolumeBody },
        problems: [400],
      },
      async ({ caller, body: { name, size, dataCenter, type } }) =>
        volumeBody(await volumes.create(caller.owner, { name, sizeGb: size, dataCenter, type })),
    ),
    route(
      {
        method: 'get',
        path: one,
        operationId: 'getNetworkVolume',
        tag,
        level: 'read',
        summary: 'One network volume',
        params: IdParam,
        success: { status: 200, schema: VolumeBody },
        problems: [404],
      },
      async ({ caller, params }) => volumeBody(await volumes.find(caller.owner, params.id as VolumeId)),
    ),
    route(
      {
        method: 'patch',
        path: one,
        operationId: 'updateNetworkVolume',
        tag,
        level: 'write',
        summary: 'Renames or grows a network volume',
        params: IdParam,
        body: { name: 'UpdateNetworkVolumeRequest', ...VOLUME_CHANGES },
        success: { status: 200, schema: VolumeBody },
        problems: [400, 404],
      },
      async ({ caller, params, body }) =>
        volumeBody(await volumes.update(caller.owner, params.id as VolumeId, volumeChanges(body))),
    ),
    route(
      {
        method: 'delete',
        path: one,
        operationId: 'deleteNetworkVolume',
        tag,
        level: 'write',
        summary: 'Removes a network volume that no endpoint uses, with all that is in it',
        params: IdParam,
        success: { status: 204, schema: null },
        problems: [404, 409],
      },
      async ({ caller, params }) => volumes.remove(caller.owner, params.id as VolumeId),
    ),
  ]
}

/** Routes of global volumes: folders like those of network volumes, in no data center. */
export function globalVolumeRoutes({ globalVolumes }: ApiParts): RestRoute[] {
  const tag = 'Global volumes'
  const one = '/v2/global-volumes/{id}'
  return [
    route(
      {
        method: 'get',
        path: '/v2/global-volumes',
        operationId: 'listGlobalVolumes',
        tag,
        level: 'read',
        forApps: true,
        summary: 'The global volumes of the caller',
        query: PageQuery,
        success: { status: 200, schema: GlobalVolumeList },
        problems: [400],
      },
      async ({ caller, query }) => {
        const { items, nextCursor } = await listedFor(globalVolumes, caller, query)
        return { globalVolumes: items.map(globalVolumeBody), pagination: pagination(nextCursor) }
      },
    ),
    route(
      {
        method: 'post',
        path: '/v2/global-volumes',
        operationId: 'createGlobalVolume',
        tag,
        level: 'write',
        summary: 'Makes a global volume: a folder that workers in all data centers share',
        body: { name: 'CreateGlobalVolumeRequest', shape: CreateGlobalVolume },
        success: { status: 201, schema: GlobalVolumeBody },
        problems: [400],
      },
      async ({ caller, body: { name, size } }) =>
        globalVolumeBody(await globalVolumes.create(caller.owner, { name, sizeGb: size, dataCenter: null })),
    ),
    route(
      {
        method: 'get',
        path: one,
        operationId: 'getGlobalVolume',
        tag,
        level: 'read',
        summary: 'One global volume',
        params: IdParam,
        success: { status: 200, schema: GlobalVolumeBody },
        problems: [404],
      },
      async ({ caller, params }) => globalVolumeBody(await globalVolumes.find(caller.owner, params.id as VolumeId)),
    ),
    route(
      {
        method: 'patch',
        path: one,
        operationId: 'updateGlobalVolume',
        tag,
        level: 'write',
        summary: 'Renames or grows a global volume',
        params: IdParam,
        body: { name: 'UpdateGlobalVolumeRequest', ...VOLUME_CHANGES },
        success: { status: 200, schema: GlobalVolumeBody },
        problems: [400, 404],
      },
      async ({ caller, params, body }) =>
        globalVolumeBody(await globalVolumes.update(caller.owner, params.id as VolumeId, volumeChanges(body))),
    ),
    route(
      {
        method: 'delete',
        path: one,
        operationId: 'deleteGlobalVolume',
        tag,
        level: 'write',
        summary: 'Removes a global volume that nothing uses, with all that is in it',
        params: IdParam,
        success: { status: 204, schema: null },
        problems: [404, 409],
      },
      async ({ caller, params }) => globalVolumes.remove(caller.owner, params.id as VolumeId),
    ),
  ]
}

function registryBody({ id, name }: Registry) {
  return { id, name }
}

function volumeBody({ id, name, sizeGb, dataCenter, type }: Volume) {
  return { id, name, size: sizeGb, dataCenter: dataCenter ?? '', type }
}

function globalVolumeBody({ id, name, sizeGb }: Volume) {
  return { id, name, size: sizeGb }
}

function volumeChanges({ name, size }: { readonly name?: string | undefined; readonly size?: number | undefined }) {
  return { ...(name === undefined ? {} : { name }), ...(size === undefined ? {} : { sizeGb: size }) }
}

/** A page of volumes; of a worker of an app those of its own endpoint or task, which are few. */
async function listedFor(volumes: Volumes, caller: Caller, query: PageRequest): Promise<Page<Volume>> {
  if (isAppWorker(caller)) return { items: await volumes.ofWorker(caller), nextCursor: null }
  return volumes.list(caller.owner, query)
}
