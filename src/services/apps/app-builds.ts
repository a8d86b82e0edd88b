import {
  type AppEnvironment,
  type ArtifactRules,
  type ArtifactUpload,
  artifactSizeProblems,
  type DeployedBuild,
  KEPT_BUILDS,
  manifestText,
  ORPHAN_MS,
  UPLOAD_MS,
} from '../../core/apps/app.ts'
import { ArtifactError } from '../../core/apps/archive.ts'
import { buildIdFromEnv, isBuildId } from '../../core/apps/build.ts'
import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import { savedEnv } from '../../core/endpoints/saved-env.ts'
import { AppError, invalidFields, notFound } from '../../core/errors.ts'
import { Holdings } from '../../core/fair-share.ts'
import type { AppId, ArtifactKey, BuildId, EndpointId, EnvironmentId, OwnerId, WorkerId } from '../../core/ids.ts'
import type { ArtifactFiles } from '../../ports/artifact-files.ts'
import type { Ports } from '../../ports/ports.ts'
import type { Quotas } from '../accounts/quotas.ts'
import { InOrder } from '../in-order.ts'
import { shortId } from '../short-id.ts'

/** Length of the token in the address of an upload: 36 ^ 31 of them. */
const TOKEN_LENGTH = 32
/** Archives that are unpacked at once, and calls that wait for their turn. */
const UNPACKING = { atOnce: 2, waiting: 32, waitingOfOne: 16 }
/** Time after its making in which a build stays although nothing has it yet: its environment gets it next. */
const NEW_MS = 10 * 60_000
/** Builds and uploads of one step of {@link AppBuilds.tidy}. */
const PART = 500

/** An endpoint whose newest release names a build, or a worker of a release that does. */
type BuildUser = { readonly endpoint: EndpointId } | { readonly worker: WorkerId }

/** An announced artifact, with the token that its address has. */
export interface AnnouncedUpload {
  readonly upload: ArtifactUpload
  readonly token: string
}

/** An archive as it arrives. */
export interface IncomingArtifact {
  /** Its size as the request announces it; null for a request that does not. */
  readonly bytes: number | null
  readonly pieces: () => AsyncIterable<Uint8Array>
}

/**
 * Builds of apps: their upload, their folders on this machine, and the end of both. An archive comes from outside: it
 * is unpacked once, when its build is made, and all workers of the build read the same folder.
 */
export class AppBuilds {
  readonly #ports
  readonly #quotas
  readonly #rules
  /** Artifacts that are received, or of which a build is made: an archive never changes under its build. */
  readonly #inUse = new Set<ArtifactKey>()
  readonly #inOrder = new InOrder<BuildId>()
  /** Places of unpacking by account, and those who wait for one. */
  readonly #unpacking = new Holdings<OwnerId>()
  #turns: { readonly owner: OwnerId; readonly go: () => void }[] = []
  /** Users of folders as the last scan found them: one read says whether a user still is one. */
  readonly #users = new Map<BuildId, BuildUser>()

  constructor(ports: Ports, quotas: Quotas, rules: ArtifactRules) {
    this.#ports = ports
    this.#quotas = quotas
    this.#rules = rules
  }

  /**
   * Announces an artifact of an app.
   * @param bytes its exact size
   * @throws AppError `not_found` without the app, `invalid` for a size out of bounds, `conflict` past a limit of the
   *   account
   */
  async announce(owner: OwnerId, appId: AppId, bytes: number): Promise<AnnouncedUpload> {
    this.#files()
    const { store, random, clock, vault } = this.#ports
    const problems = artifactSizeProblems(bytes, this.#rules)
    if (problems.length > 0) throw invalidFields(problems)
    if ((await store.apps.find(owner, appId)) === null) throw notFound('app', appId)
    const token = shortId(random, TOKEN_LENGTH)
    const nowMs = clock.now()
    const upload: ArtifactUpload = {
      key: shortId(random) as string as ArtifactKey,
      owner,
      appId,
      bytes,
      tokenHash: vault.hash(token),
      createdAtMs: nowMs,
      expiresAtMs: nowMs + UPLOAD_MS,
    }
    const keep = () => this.#quotas.keepingArchive(owner, bytes, () => store.appBuilds.insertUpload(upload))
    await this.#quotas.adding(owner, 'builds', keep)
    return { upload, token }
  }

  /**
   * The upload that an address names; it is known by its token alone.
   * @throws AppError `not_found` for an unknown or wrong one, and one that is over
   */
  async findUpload(key: string, token: string): Promise<ArtifactUpload> {
    const { store, vault, clock } = this.#ports
    const upload = isBuildId(key) ? await store.appBuilds.findUpload(key as string as ArtifactKey) : null
    const isRight = upload !== null && vault.equal(upload.tokenHash, vault.hash(token))
    if (!isRight || clock.now() >= upload.expiresAtMs) {
      throw new AppError('not_found', 'there is no such upload, or its time is over; deploy again')
    }
    return upload
  }

  /**
   * Receives the archive of an upload. It may be sent again, whole, until its build is made.
   * @throws AppError `invalid` for another size than the announced one, `conflict` while the same one is received
   */
  async receive(upload: ArtifactUpload, { bytes, pieces }: IncomingArtifact): Promise<void> {
    const { key } = upload
    if (bytes !== null && bytes !== upload.bytes) throw wrongSize(upload, String(bytes))
    return this.#alone(key, async () => {
      // A build may have been made of it since its address was checked.
      if ((await this.#ports.store.appBuilds.findUpload(key)) === null) throw notFound('artifact', key)
      const draft = await this.#files().draft(key)
      try {
        for await (const piece of pieces()) {
          if (draft.bytes + piece.length > upload.bytes) throw wrongSize(upload, 'more')
          await draft.append(piece)
        }
        if (draft.bytes !== upload.bytes) throw wrongSize(upload, String(draft.bytes))
        await draft.keep()
      } finally {
        await draft.drop()
      }
      // It may be over, or its app removed, in the meantime.
      if (!(await this.#ports.store.appBuilds.hasArtifact(key))) await this.#files().removeArtifact(key)
    })
  }

  /**
   * Makes a build of an upload, and its folder.
   * @throws AppError `not_found` without the upload, `invalid` for an archive that may not be unpacked or is not the
   *   announced one, `rate_limited` while too many are unpacked
   */
  async finalize(owner: OwnerId, appId: AppId, key: string, manifest: unknown): Promise<DeployedBuild> {
    const read = manifestText(manifest)
    if ('problems' in read) throw invalidFields(read.problems)
    const { store } = this.#ports
    const upload = isBuildId(key) ? await store.appBuilds.findUpload(key as string as ArtifactKey) : null
    if (upload === null || upload.owner !== owner || upload.appId !== appId) throw notFound('artifact', key)
    return this.#alone(upload.key, () => this.#make(upload, read.text))
  }

  async #make(upload: ArtifactUpload, manifest: string): Promise<DeployedBuild> {
    const { store, random, clock, emit } = this.#ports
    const files = this.#files()
    const { owner, appId, key } = upload
    const bytes = await files.bytes(key)
    if (bytes === null) {
      throw new AppError('invalid', `artifact ${key} was not received yet; send it to its uploadUrl first`)
    }
    if (bytes !== upload.bytes) throw wrongSize(upload, String(bytes))
    const id = shortId(random) as BuildId
    const unpackedBytes = (await this.#unpacked(owner, id, key)) ?? 0
    const build = { id, owner, appId, artifact: key, bytes, unpackedBytes, createdAtMs: clock.now() }
    let isStored = false
    try {
      isStored = await store.appBuilds.insert(build, manifest)
    } finally {
      if (!isStored) await files.removeFolder(id)
    }
    if (!isStored) throw notFound('artifact', key)
    emit('build.made', { buildId: id, appId, owner, bytes, unpackedBytes })
    await this.#prune(owner, appId)
    return build
  }

  /** @throws AppError `not_found`, also for a build of another owner */
  async find(owner: OwnerId, id: BuildId): Promise<DeployedBuild> {
    const build = await this.#ports.store.appBuilds.find(owner, id)
    if (build === null) throw notFound('build', id)
    return build
  }

  /** The manifest of a build, as its client made it. @throws AppError `not_found` */
  async manifest(owner: OwnerId, id: BuildId): Promise<Readonly<Record<string, unknown>>> {
    const text = await this.#ports.store.appBuilds.manifest(owner, id)
    if (text === null) throw notFound('build', id)
    return JSON.parse(text) as Readonly<Record<string, unknown>>
  }

  /** Replaces the manifest of a build; the one in its archive stays. @throws AppError `not_found`, `invalid` */
  async setManifest(owner: OwnerId, id: BuildId, manifest: unknown): Promise<DeployedBuild> {
    const read = manifestText(manifest)
    if ('problems' in read) throw invalidFields(read.problems)
    if (!(await this.#ports.store.appBuilds.setManifest(owner, id, read.text))) throw notFound('build', id)
    return this.find(owner, id)
  }

  /** The newest builds of an app, at most 1,000. */
  list(owner: OwnerId, appId: AppId): Promise<DeployedBuild[]> {
    return this.#ports.store.appBuilds.list(owner, appId, 1_000)
  }

  /**
   * Makes a build the active one of an environment of its app. Releases go on with their own builds.
   * @throws AppError `not_found`
   */
  async activate(owner: OwnerId, environmentId: EnvironmentId, id: BuildId): Promise<AppEnvironment> {
    const { store } = this.#ports
    if (!(await store.appBuilds.activate(owner, environmentId, id))) {
      await this.find(owner, id)
      throw notFound('environment', environmentId)
    }
    const environment = await store.apps.findEnvironment(owner, environmentId)
    if (environment === null) throw notFound('environment', environmentId)
    return environment
  }

  /**
   * Absolute path of the folder of a build, which is made again where it was removed.
   * @throws AppError `not_found` without the build, `invalid` without its archive
   */
  async folderOf(owner: OwnerId, id: BuildId): Promise<string> {
    const { artifact } = await this.find(owner, id)
    // A start does not wait for the unpacking of others.
    if (!this.#files().isWhole(id)) await this.#unpacked(owner, id, artifact)
    return this.#files().path(id)
  }

  /** True if a build exists, so that its folder can be made. */
  async exists(owner: OwnerId, id: BuildId): Promise<boolean> {
    return (await this.#ports.store.appBuilds.find(owner, id)) !== null
  }

  /**
   * Removes uploads that are over, and folders that nothing runs any more: no environment has their build active, no
   * endpoint names it, and no worker of a release that does is left.
   */
  async tidy(nowMs: number): Promise<void> {
    const { artifacts: files, store } = this.#ports
    if (files === undefined) return
    for (const { key } of await store.appBuilds.uploadsOver(nowMs, PART)) {
      if (this.#inUse.has(key)) continue
      await files.removeArtifact(key)
      await store.appBuilds.removeUpload(key)
    }
    const folders = new Set(await files.unpacked())
    for (const id of this.#users.keys()) if (!folders.has(id)) this.#users.delete(id)
    if (folders.size === 0) return
    const active = new Set(await store.appBuilds.active())
    const unused: BuildId[] = []
    for (const id of folders) if (!active.has(id) && !(await this.#isStillUsed(id))) unused.push(id)
    if (unused.length === 0) return
    const builds = await this.#known(new Set(unused))
    const isNew = (id: BuildId) => nowMs - (builds.get(id)?.createdAtMs ?? Number.NEGATIVE_INFINITY) < NEW_MS
    const idle = unused.filter(id => !isNew(id))
    if (idle.length === 0) return
    // A folder without a build may be of any account.
    const owners = idle.every(id => builds.has(id)) ? new Set(idle.map(id => builds.get(id)!.owner)) : null
    const named = await this.#named(owners)
    if (named === 'unknown') return
    for (const id of idle) {
      const user = named.get(id)
      if (user !== undefined) this.#users.set(id, user)
      else await this.#inOrder.run(id, true, () => files.removeFolder(id))
    }
  }

  /** True if the user that the last scan found still uses the build; another user is looked for otherwise. */
  async #isStillUsed(id: BuildId): Promise<boolean> {
    const user = this.#users.get(id)
    if (user === undefined) return false
    const { endpoints, templates, workers } = this.#ports.store
    if ('worker' in user) return ((await workers.find(user.worker))?.state ?? 'EXITED') !== 'EXITED'
    const endpoint = await endpoints.find(user.endpoint)
    const template = endpoint === null ? null : await templates.find(endpoint.owner, endpoint.templateId)
    return endpoint !== null && template !== null && buildIdFromEnv(savedEnv(endpoint, template)) === id
  }

  /** Removes archives that no upload and no build has, a day after their last change. */
  async removeOrphans(): Promise<void> {
    const { artifacts: files, store } = this.#ports
    for (const key of (await files?.old(ORPHAN_MS)) ?? []) {
      if (!(await store.appBuilds.hasArtifact(key))) await files?.removeArtifact(key)
    }
  }

  #files(): ArtifactFiles {
    const { artifacts } = this.#ports
    if (artifacts === undefined) throw new AppError('invalid', 'this server keeps no builds of apps')
    return artifacts
  }

  /** @throws AppError `conflict` while the artifact is received, or a build is made of it */
  async #alone<Done>(key: ArtifactKey, work: () => Promise<Done>): Promise<Done> {
    if (this.#inUse.has(key)) throw new AppError('conflict', `artifact ${key} is being received, or made a build`)
    this.#inUse.add(key)
    try {
      return await work()
    } finally {
      this.#inUse.delete(key)
    }
  }

  /** Bytes of the files of a build, when its folder was made just now. */
  #unpacked(owner: OwnerId, id: BuildId, key: ArtifactKey): Promise<number | null> {
    return this.#inOrder.run(id, true, () =>
      this.#inTurn(owner, async () => {
        try {
          return await this.#files().unpack(id, key, this.#rules)
        } catch (error) {
          if (!(error instanceof ArtifactError)) throw error
          throw new AppError('invalid', `the artifact ${error.message}`)
        }
      }),
    )
  }

  /** A place that becomes free is for the account with the fewest places, so that none keeps others waiting. */
  async #inTurn<Done>(owner: OwnerId, work: () => Promise<Done>): Promise<Done> {
    if ([...this.#unpacking].reduce((sum, [, held]) => sum + held, 0) >= UNPACKING.atOnce) {
      const own = this.#turns.filter(turn => turn.owner === owner).length
      if (own >= UNPACKING.waitingOfOne || this.#turns.length >= UNPACKING.waiting) {
        throw new AppError('rate_limited', 'too many builds are being unpacked', { retryAfterSeconds: 5 })
      }
      await new Promise<void>(go => this.#turns.push({ owner, go }))
    } else this.#unpacking.add(owner, 1)
    try {
      return await work()
    } finally {
      this.#unpacking.add(owner, -1)
      const least = Math.min(...this.#turns.map(turn => this.#unpacking.of(turn.owner)))
      const next = this.#turns.find(turn => this.#unpacking.of(turn.owner) === least)
      if (next !== undefined) {
        this.#turns = this.#turns.filter(turn => turn !== next)
        // The place passes to the next one.
        this.#unpacking.add(next.owner, 1)
        next.go()
      }
    }
  }

  /** Removes the oldest builds of an app that nothing runs, beyond those that are kept. */
  async #prune(owner: OwnerId, appId: AppId): Promise<void> {
    const { store } = this.#ports
    const old = (await this.list(owner, appId)).slice(KEPT_BUILDS)
    if (old.length === 0) return
    const named = await this.#named(new Set([owner]))
    if (named === 'unknown') return
    for (const { id, artifact } of old) {
      if (named.has(id) || !(await store.appBuilds.remove(id))) continue
      await this.#files().removeArtifact(artifact)
      await this.#files().removeFolder(id)
    }
  }

  async #known(ids: ReadonlySet<BuildId>): Promise<Map<BuildId, DeployedBuild>> {
    const builds = new Map<BuildId, DeployedBuild>()
    let after: BuildId | null = null
    for (;;) {
      const part: DeployedBuild[] = await this.#ports.store.appBuilds.all(after, PART)
      for (const build of part) if (ids.has(build.id)) builds.set(build.id, build)
      if (part.length < PART) return builds
      after = part.at(-1)!.id
    }
  }

  /**
   * Builds that endpoints and workers of these accounts name, each with one of these users; `unknown` while a worker
   * of theirs runs whose endpoint was deleted, since its release is gone.
   * @param owners null for all accounts
   */
  async #named(owners: ReadonlySet<OwnerId> | null): Promise<ReadonlyMap<BuildId, BuildUser> | 'unknown'> {
    const { store } = this.#ports
    const named = new Map<BuildId, BuildUser>()
    const add = (env: Readonly<Record<string, string>>, user: BuildUser) => {
      const id = buildIdFromEnv(env)
      if (id !== null) named.set(id, user)
    }
    for (const owner of owners ?? (await store.accounts.list()).map(({ id }) => id)) {
      const templates = new Map((await store.templates.ofEndpoints(owner)).map(template => [template.id, template]))
      for (const endpoint of await store.endpoints.list(owner)) {
        const template = templates.get(endpoint.templateId)
        if (template === undefined) return 'unknown'
        add(savedEnv(endpoint, template), { endpoint: endpoint.id })
      }
    }
    const versions = new Map<string, Pick<Endpoint, 'id' | 'version'> & { readonly worker: WorkerId }>()
    for (const { id: worker, owner, endpointId: id, version } of await store.workers.alive()) {
      if (owners === null || owners.has(owner)) versions.set(`${id} ${version}`, { id, version, worker })
    }
    for (const { id, version, worker } of versions.values()) {
      const configuration = (await store.releases.find(id, version))?.configuration ?? null
      if (configuration === null) return 'unknown'
      add(savedEnv(configuration.endpoint, configuration.template), { worker })
    }
    return named
  }
}

function wrongSize({ bytes }: ArtifactUpload, received: string): AppError {
  return new AppError('invalid', `the artifact has ${received} bytes, and ${bytes} were announced`)
}
