import type { AppEnvironment, DeployedApp, DeployedBuild } from '../../../core/apps/app.ts'
import { isBuildId } from '../../../core/apps/build.ts'
import { AppError } from '../../../core/errors.ts'
import type { AppId, BuildId, EnvironmentId, OwnerId } from '../../../core/ids.ts'
import { mapConcurrently } from '../../../services/map-concurrently.ts'
import { uploadUrl } from '../../addresses.ts'
import type { ApiParts } from '../../parts.ts'
import type { GraphqlContext, Writing } from '../context.ts'
import { endpointView, volumeView } from '../views.ts'

/** Endpoints of an environment that are read at once. */
const CONCURRENCY = 16

/** Source value of the resolvers of an app. */
export interface AppView {
  readonly app: DeployedApp
  readonly id: AppId
  readonly name: string
  readonly createdAt: string
}

interface EnvironmentView {
  readonly environment: AppEnvironment
}

interface BuildView {
  readonly build: DeployedBuild
}

/** An app as GraphQL shows it; its environments and builds are read on request. */
export function appView(app: DeployedApp): AppView {
  return { app, id: app.id, name: app.name, createdAt: new Date(app.createdAtMs).toISOString() }
}

function environmentView(environment: AppEnvironment) {
  const { id, name, activeBuildId, createdAtMs } = environment
  const state = activeBuildId === null ? 'EMPTY' : 'DEPLOYED'
  return { environment, id, name, state, activeBuildId, createdAt: new Date(createdAtMs).toISOString() }
}

function buildView(build: DeployedBuild) {
  const { id, artifact: objectKey, createdAtMs } = build
  return { build, id, objectKey, createdAt: new Date(createdAtMs).toISOString() }
}

/** Queries of apps. Null for what does not exist, also for what another account has. */
export function appQueries(parts: ApiParts) {
  const { store } = parts.ports
  const reading =
    <Arguments, Found, View>(
      find: (owner: OwnerId, args: Arguments) => Promise<Found | null>,
      view: (found: Found) => View,
    ) =>
    async (_: unknown, args: Arguments, { caller }: GraphqlContext): Promise<View | null> => {
      if (caller === null) throw new AppError('unauthorized', 'an API key is needed to read apps')
      parts.access.requireManagement(caller, 'read')
      const found = await find(caller.owner, args)
      return found === null ? null : view(found)
    }
  type ById = { readonly flashAppId: AppId }
  type ByName = { readonly flashAppName: string }
  type Named = { readonly input: { readonly flashAppId: AppId; readonly name: string } }
  return {
    flashApp: reading((owner, { flashAppId }: ById) => store.apps.find(owner, flashAppId), appView),
    flashAppByName: reading((owner, { flashAppName }: ByName) => store.apps.findByName(owner, flashAppName), appView),
    flashEnvironment: reading(
      (owner, { flashEnvironmentId: id }: { readonly flashEnvironmentId: EnvironmentId }) =>
        store.apps.findEnvironment(owner, id),
      environmentView,
    ),
    flashEnvironmentByName: reading(
      (owner, { input: { flashAppId, name } }: Named) => store.apps.findEnvironmentByName(owner, flashAppId, name),
      environmentView,
    ),
    flashBuild: reading(
      (owner, { flashBuildId: id }: { readonly flashBuildId: BuildId }) => store.appBuilds.find(owner, id),
      buildView,
    ),
  }
}

/** Fields of apps that are read only if requested. All of them belong to the caller. */
export function appFields({ ports: { store }, appBuilds }: ApiParts) {
  return {
    FlashApp: {
      flashEnvironments: async ({ app }: AppView) =>
        (await store.apps.environments(app.owner, app.id)).map(environmentView),
      flashBuilds: async ({ app }: AppView) => (await appBuilds.list(app.owner, app.id)).map(buildView),
    },
    FlashEnvironment: {
      endpoints: async ({ environment }: EnvironmentView) =>
        (await endpointsOf(environment)).map(endpoint => endpointView(endpoint)),
      networkVolumes: async ({ environment }: EnvironmentView, _: unknown, { loaders }: GraphqlContext) => {
        const ids = new Set((await endpointsOf(environment)).flatMap(({ networkVolumeIds }) => networkVolumeIds))
        const volumes = await Promise.all([...ids].map(id => loaders.volume(id)))
        return volumes.flatMap(volume => (volume === null ? [] : volumeView(volume)))
      },
    },
    FlashBuild: {
      manifest: ({ build }: BuildView) => appBuilds.manifest(build.owner, build.id),
    },
  }

  async function endpointsOf({ owner, id }: AppEnvironment) {
    const places = await store.apps.endpoints(owner, id)
    const endpoints = await mapConcurrently(places, CONCURRENCY, place => store.endpoints.find(place.id))
    return endpoints.filter(endpoint => endpoint !== null)
  }
}

type Input<Fields> = { readonly input: Fields }

/** Mutations on apps. */
export function appMutations({ apps, appBuilds, addresses }: ApiParts, writing: Writing) {
  return {
    createFlashApp: writing(async (caller, { input }: Input<{ readonly name: string }>) =>
      appView(await apps.create(caller.owner, input.name)),
    ),
    createFlashEnvironment: writing(
      async (caller, { input }: Input<{ readonly flashAppId: AppId; readonly name: string }>) =>
        environmentView(await apps.createEnvironment(caller.owner, input.flashAppId, input.name)),
    ),
    prepareFlashArtifactUpload: writing(
      async (caller, { input }: Input<{ readonly flashAppId: AppId; readonly tarballSize: number }>) => {
        const { upload, token } = await appBuilds.announce(caller.owner, input.flashAppId, input.tarballSize)
        const expiresAt = new Date(upload.expiresAtMs).toISOString()
        return {
          objectKey: upload.key,
          uploadUrl: uploadUrl(addresses, upload.key, token),
          downloadUrl: null,
          expiresAt,
        }
      },
    ),
    finalizeFlashArtifactUpload: writing(
      async (
        caller,
        { input }: Input<{ readonly flashAppId: AppId; readonly objectKey: string; readonly manifest: unknown }>,
      ) => buildView(await appBuilds.finalize(caller.owner, input.flashAppId, input.objectKey, input.manifest)),
    ),
    updateFlashBuildManifest: writing(
      async (caller, { input }: Input<{ readonly flashBuildId: string; readonly manifest: unknown }>) =>
        buildView(await appBuilds.setManifest(caller.owner, requireBuildId(input.flashBuildId), input.manifest)),
    ),
    deployBuildToEnvironment: writing(
      async (
        caller,
        { input }: Input<{ readonly flashEnvironmentId: EnvironmentId; readonly flashBuildId: string }>,
      ) => {
        const id = requireBuildId(input.flashBuildId)
        return environmentView(await appBuilds.activate(caller.owner, input.flashEnvironmentId, id))
      },
    ),
    deleteFlashApp: writing(async (caller, { flashAppId }: { readonly flashAppId: AppId }) => {
      await apps.remove(caller.owner, flashAppId)
      return null
    }),
    deleteFlashEnvironment: writing(
      async (caller, { flashEnvironmentId }: { readonly flashEnvironmentId: EnvironmentId }) => {
        await apps.removeEnvironment(caller.owner, flashEnvironmentId)
        return null
      },
    ),
  }
}

function requireBuildId(id: string): BuildId {
  if (isBuildId(id)) return id
  throw new AppError('not_found', `build ${id.slice(0, 100)} not found`)
}
