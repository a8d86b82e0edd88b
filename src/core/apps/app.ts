import { AppError } from '../errors.ts'
import { type FieldProblem, fieldProblem, nameProblems } from '../field-problem.ts'
import type { AppId, ArtifactKey, BuildId, EndpointId, EnvironmentId, OwnerId } from '../ids.ts'

/** An app: functions that were deployed together, in one environment or several. */
export interface DeployedApp {
  readonly id: AppId
  readonly owner: OwnerId
  /** Unique in its account. */
  readonly name: string
  readonly createdAtMs: number
}

/** An environment of an app: a set of endpoints, whose names are unique in it. */
export interface AppEnvironment {
  readonly id: EnvironmentId
  readonly owner: OwnerId
  readonly appId: AppId
  /** Unique in its app. */
  readonly name: string
  /** The build that was deployed last; null before the first. Each release has its own build, see build.ts. */
  readonly activeBuildId: BuildId | null
  readonly createdAtMs: number
}

/** An endpoint of an environment. */
export interface EnvironmentEndpoint {
  readonly environmentId: EnvironmentId
  readonly id: EndpointId
  readonly name: string
}

/** A build of an app without its manifest: code and packages, as one archive. It never changes. */
export interface DeployedBuild {
  readonly id: BuildId
  readonly owner: OwnerId
  readonly appId: AppId
  readonly artifact: ArtifactKey
  /** Bytes of the archive. */
  readonly bytes: number
  /** Bytes of the files in it. */
  readonly unpackedBytes: number
  readonly createdAtMs: number
}

/** An announced artifact that has no build yet. */
export interface ArtifactUpload {
  readonly key: ArtifactKey
  readonly owner: OwnerId
  readonly appId: AppId
  /** Its size in bytes, as announced; any other size is refused. */
  readonly bytes: number
  /** Hash of the token in its address. */
  readonly tokenHash: string
  readonly createdAtMs: number
  /** Instant from which nothing is received for it, and no build made of it. */
  readonly expiresAtMs: number
}

/** The place of an endpoint in an app, as callers name it. */
export interface AppTarget {
  readonly app: string
  readonly environment: string
  /** The name of the endpoint in the environment, or its id. */
  readonly endpoint: string
}

/** The headers that name an {@link AppTarget}. */
const TARGET_HEADERS = { app: 'x-flash-app', environment: 'x-flash-environment', endpoint: 'x-flash-endpoint' } as const

/**
 * The endpoint that the headers of a request name.
 * @param header reads a header by its name in lower case
 * @throws AppError `invalid` when one is missing
 */
export function readAppTarget(header: (name: string) => string | null | undefined): AppTarget {
  const read = (name: string) => {
    const value = header(name)?.trim() ?? ''
    if (value !== '') return value
    throw new AppError('invalid', `the header ${name} is missing; it names the endpoint together with others`)
  }
  const { app, environment, endpoint } = TARGET_HEADERS
  return { app: read(app), environment: read(environment), endpoint: read(endpoint) }
}

/** Limits of artifacts. */
export interface ArtifactRules {
  /** Largest archive, in bytes. */
  readonly maxBytes: number
  /** Largest sum of the sizes of the files in one, in bytes. */
  readonly maxUnpackedBytes: number
}

const MB = 1024 * 1024

/** The default limits. The SDK itself makes no archive above 1,500 MB. */
export const ARTIFACT_RULES: ArtifactRules = { maxBytes: 1_500 * MB, maxUnpackedBytes: 5_000 * MB }

/** Limit of files and folders in an artifact. */
export const MAX_ARTIFACT_ENTRIES = 200_000

/** Time for which an address of an upload is good. */
export const UPLOAD_MS = 3_600_000

/** Age at which files that no upload and no build has are removed. */
export const ORPHAN_MS = 24 * 3_600_000

/** Builds of an app that are kept although nothing runs them, so that a rollback finds them; the newest ones. */
export const KEPT_BUILDS = 10

/** Limit of the text of a manifest. */
const MAX_MANIFEST = 1024 * 1024

/** All problems of the name of an app or an environment. Clients send it as a header. */
export function appNameProblems(name: string): FieldProblem[] {
  const problems = nameProblems(name)
  if (problems.length === 0 && !/^[\x20-\x7e]+$/.test(name)) {
    problems.push(fieldProblem('name', 'must have visible ASCII characters and spaces alone'))
  }
  if (problems.length === 0 && name.trim() !== name) {
    problems.push(fieldProblem('name', 'must not begin or end with a space'))
  }
  return problems
}

/** All problems of an announced size. */
export function artifactSizeProblems(bytes: number, { maxBytes }: ArtifactRules): FieldProblem[] {
  if (!Number.isSafeInteger(bytes) || bytes < 1) {
    return [fieldProblem('tarballSize', 'must be a whole number of bytes of at least 1')]
  }
  if (bytes <= maxBytes) return []
  return [fieldProblem('tarballSize', `must be at most ${maxBytes} bytes, the limit of this server`, `${bytes}`)]
}

/**
 * The text of a manifest, as it is stored.
 * @returns problems of a value that is no manifest
 */
export function manifestText(manifest: unknown): { text: string } | { problems: FieldProblem[] } {
  if (typeof manifest !== 'object' || manifest === null || Array.isArray(manifest)) {
    return { problems: [fieldProblem('manifest', 'must be a JSON object')] }
  }
  const text = JSON.stringify(manifest)
  if (text.length <= MAX_MANIFEST) return { text }
  return { problems: [fieldProblem('manifest', `must have at most ${MAX_MANIFEST} characters`)] }
}
