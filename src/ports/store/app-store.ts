import type {
  AppEnvironment,
  AppTarget,
  ArtifactUpload,
  DeployedApp,
  DeployedBuild,
  EnvironmentEndpoint,
} from '../../core/apps/app.ts'
import type { AppId, ArtifactKey, BuildId, EndpointId, EnvironmentId, OwnerId } from '../../core/ids.ts'
import type { Slice } from '../../core/pages.ts'

/** Apps and their environments. */
export interface AppStore {
  /** False when the owner has an app of that name. */
  insert(app: DeployedApp): Promise<boolean>
  find(owner: OwnerId, id: AppId): Promise<DeployedApp | null>
  findByName(owner: OwnerId, name: string): Promise<DeployedApp | null>
  /** Those of an owner, oldest first; the first 10,000 unless a slice is given. */
  list(owner: OwnerId, slice?: Slice): Promise<DeployedApp[]>
  /** Removes it with its builds and uploads; the names of its environments, at most 10, when it has some. */
  remove(owner: OwnerId, id: AppId): Promise<'removed' | 'absent' | string[]>
  /** `taken` when the app has an environment of that name, `absent` when the owner has no such app. */
  insertEnvironment(environment: AppEnvironment): Promise<'added' | 'taken' | 'absent'>
  findEnvironment(owner: OwnerId, id: EnvironmentId): Promise<AppEnvironment | null>
  findEnvironmentByName(owner: OwnerId, appId: AppId, name: string): Promise<AppEnvironment | null>
  /** Those of one app, or of all apps of the owner, oldest first; at most 10,000. */
  environments(owner: OwnerId, appId: AppId | null): Promise<AppEnvironment[]>
  /** The endpoints of one environment, or of all of the owner, by name; at most 10,000. */
  endpoints(owner: OwnerId, environmentId: EnvironmentId | null): Promise<EnvironmentEndpoint[]>
  /** The endpoints that it has, at most 10, when it cannot be removed for them. */
  removeEnvironment(owner: OwnerId, id: EnvironmentId): Promise<'removed' | 'absent' | EndpointId[]>
  /** The endpoint at a place: that of the name, else that of the id. Null when there is none. */
  target(owner: OwnerId, place: AppTarget): Promise<EndpointId | null>
}

/** Builds of apps, and the uploads that become builds. */
export interface AppBuildStore {
  insertUpload(upload: ArtifactUpload): Promise<void>
  findUpload(key: ArtifactKey): Promise<ArtifactUpload | null>
  /** Uploads that are over, the oldest first. */
  uploadsOver(nowMs: number, limit: number): Promise<ArtifactUpload[]>
  removeUpload(key: ArtifactKey): Promise<void>
  /** Makes a build of its upload, which goes. False when the upload is gone. */
  insert(build: DeployedBuild, manifest: string): Promise<boolean>
  find(owner: OwnerId, id: BuildId): Promise<DeployedBuild | null>
  /** The manifest as a JSON text. */
  manifest(owner: OwnerId, id: BuildId): Promise<string | null>
  /** Replaces the manifest; false for an unknown build. */
  setManifest(owner: OwnerId, id: BuildId, manifest: string): Promise<boolean>
  /** Those of an app, the newest first. */
  list(owner: OwnerId, appId: AppId, limit: number): Promise<DeployedBuild[]>
  /** Makes a build the active one of an environment of its app. False when one of them does not exist. */
  activate(owner: OwnerId, environmentId: EnvironmentId, id: BuildId): Promise<boolean>
  /** Builds that an environment has active, of all accounts. */
  active(): Promise<BuildId[]>
  /** Builds of all accounts after an id, in the order of ids. */
  all(after: BuildId | null, limit: number): Promise<DeployedBuild[]>
  /** Removes a build; false when an environment has it active, or it is gone. */
  remove(id: BuildId): Promise<boolean>
  /** True if a build or an upload has this artifact. */
  hasArtifact(key: ArtifactKey): Promise<boolean>
  /** Bytes of the archives of an account, those that were announced among them. */
  bytes(owner: OwnerId): Promise<number>
}
