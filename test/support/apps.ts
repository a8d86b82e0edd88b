/** Apps of RunPod's SDK 2.0 in a rig: what `rp flash deploy` sends, one call after the other. */
import assert from 'node:assert/strict'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { BuildId, EndpointId } from '../../src/core/ids.ts'
import { createArtifactFiles, type DiskArtifactFiles } from '../../src/system/apps/artifact-files.ts'
import { artifactOf } from './archives.ts'
import { removeFolder } from './remove-folder.ts'
import { type Answer, type Asking, openRig, type Rig, type RigOptions } from './rig.ts'

/** A rig that keeps builds of apps. */
export interface AppRig {
  readonly rig: Rig
  readonly files: DiskArtifactFiles
  /** The folder of everything. */
  readonly root: string
}

/** Opens a rig with builds of apps in a folder of the test. */
export async function openAppRig(t: TestContext, options: RigOptions = {}): Promise<AppRig> {
  const root = mkdtempSync(join(tmpdir(), 'runyard-apps-'))
  t.after(() => removeFolder(root))
  const onError = (error: unknown) => {
    throw error
  }
  const files = createArtifactFiles({ root, onError })
  return { rig: await openRig(t, { artifacts: files, ...options }), files, root }
}

const CREATE_APP = 'mutation ($input: CreateFlashAppInput!) { createFlashApp(input: $input) { id name } }'
const CREATE_ENVIRONMENT = `mutation ($input: CreateFlashEnvironmentInput!) {
  createFlashEnvironment(input: $input) { id name } }`
const PREPARE = `mutation ($input: PrepareFlashArtifactUploadInput!) {
  prepareFlashArtifactUpload(input: $input) { uploadUrl objectKey expiresAt } }`
/** The document with which a build is made. */
export const FINALIZE = `mutation ($input: FinalizeFlashArtifactUploadInput!) {
  finalizeFlashArtifactUpload(input: $input) { id manifest } }`
const DEPLOY = `mutation ($input: DeployBuildToEnvironmentInput!) {
  deployBuildToEnvironment(input: $input) { id name } }`

/** Makes an app. @returns its id */
export async function createApp(rig: Rig, name: string, asking: Asking = {}): Promise<string> {
  return (await rig.graphql(CREATE_APP, { input: { name } }, asking)).createFlashApp.id
}

/** Makes an environment. @returns its id */
export async function createEnvironment(rig: Rig, flashAppId: string, name: string, asking: Asking = {}) {
  const input = { flashAppId, name }
  const made = await rig.graphql(CREATE_ENVIRONMENT, { input }, asking)
  return made.createFlashEnvironment.id as string
}

/** An announced upload. */
export interface Upload {
  readonly objectKey: string
  readonly uploadUrl: string
}

/** Announces an archive. */
export async function prepare(rig: Rig, flashAppId: string, tarballSize: number, asking: Asking = {}): Promise<Upload> {
  return (await rig.graphql(PREPARE, { input: { flashAppId, tarballSize } }, asking)).prepareFlashArtifactUpload
}

/** Sends an archive as the SDK does: without a key. */
export function put(
  rig: Rig,
  { uploadUrl }: Upload,
  body: Buffer,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const { pathname, search, origin } = new URL(uploadUrl)
  const sent = { 'content-length': String(body.length), ...headers }
  return rig.ask('PUT', `${pathname}${search}`, {
    at: origin,
    body,
    key: null,
    type: 'application/gzip',
    headers: sent,
  })
}

/** Makes a build of an archive. @returns the response */
export function finalize(rig: Rig, flashAppId: string, objectKey: string, asking: Asking = {}): Promise<Answer> {
  const variables = { input: { flashAppId, objectKey, manifest: { version: 1, app: 'one' } } }
  return rig.ask('POST', '/graphql', { ...asking, body: { query: FINALIZE, variables } })
}

/** Makes a build with these files. @returns its id */
export async function makeBuild(
  rig: Rig,
  flashAppId: string,
  files: Readonly<Record<string, string>>,
): Promise<BuildId> {
  const archive = artifactOf(files)
  const upload = await prepare(rig, flashAppId, archive.length)
  assert.equal((await put(rig, upload, archive)).status, 200)
  const { json } = await finalize(rig, flashAppId, upload.objectKey)
  assert.equal(json.errors, undefined, JSON.stringify(json.errors))
  return json.data.finalizeFlashArtifactUpload.id
}

/** Makes a build the active one of an environment. */
export async function activate(rig: Rig, flashEnvironmentId: string, flashBuildId: string): Promise<void> {
  await rig.graphql(DEPLOY, { input: { flashEnvironmentId, flashBuildId } })
}

/** Saves an endpoint as the SDK does. @returns its id */
export function saveFunction(
  rig: Rig,
  { name, environmentId, buildId, id }: { name: string; environmentId: string; buildId: string; id?: EndpointId },
  fields: Readonly<Record<string, unknown>> = {},
): Promise<EndpointId> {
  const env = [
    { key: 'FLASH_RESOURCE_NAME', value: name },
    { key: 'RUNPOD_BUILD_ID', value: buildId },
  ]
  const template = { name: `one-${name}-template`, imageName: 'image:1', containerDiskInGb: 10, dockerArgs: '', env }
  const own = { name, flashEnvironmentId: environmentId, networkVolumeIds: [], volumes: [], executionTimeoutMs: 0 }
  return rig.endpoint({ ...(id && { id }), ...own, template, ...fields })
}

/** The key of another account. */
export async function strangerKey(rig: Rig): Promise<string> {
  const { id } = (await rig.ask('POST', '/v2/account/accounts', { body: { name: 'stranger' } })).json
  return (await rig.ask('POST', '/v2/account/keys', { body: { name: 'stranger', account: id } })).json.key
}
