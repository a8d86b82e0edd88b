/**
 * Parts of the public API that Runyard lacks: pods but tasks, the hub, the model repository, public
 * endpoints. Lists are empty, and clients get a sentence for everything else, so their documents must be valid: each
 * input is a scalar that takes anything.
 */
export const unsupportedSdl = /* GraphQL */ `
  "A worker of an endpoint that has not ended, or a task of an app."
  type Pod {
    id: String
    name: String
    desiredStatus: String
    imageName: String
    dockerArgs: String
    dockerId: String
    env: [String]
    gpuCount: Int
    vcpuCount: Float
    memoryInGb: Float
    containerDiskInGb: Int
    volumeInGb: Float
    volumeMountPath: String
    costPerHr: Float
    lastStatusChange: String
    machineId: String
    machineType: String
    volumeKey: String
    podType: String
    port: Int
    ports: String
    templateId: String
    networkVolumeId: String
    containerRegistryAuthId: String
    uptimeSeconds: Int
    "Always null: the status of a worker has the models that it waits for."
    modelVersions: [PodModelVersion]
    machine: PodMachine
    runtime: PodRuntime
  }

  type PodModelVersion {
    modelVersionUuid: String
    modelVersionHash: String
    machineAssignmentStatus: String
    failurePhase: String
    failureReason: String
    mountPath: String
  }

  type PodMachine {
    podHostId: String
    gpuTypeId: String
    gpuDisplayName: String
    location: String
    gpuType: GpuType
  }

  type PodRuntime {
    uptimeInSeconds: Int
    ports: [PodRuntimePort]
    gpus: [PodRuntimeGpu]
    container: PodRuntimeContainer
  }

  type PodRuntimeGpu {
    id: String
    gpuUtilPercent: Float
    memoryUtilPercent: Float
  }

  type PodRuntimeContainer {
    cpuPercent: Float
    memoryPercent: Float
  }

  type PodRuntimePort {
    ip: String
    isIpPublic: Boolean
    privatePort: Int
    publicPort: Int
    type: String
  }

  type GlobalStoreBucket {
    id: String
    name: String
  }

  "A repository of the hub."
  type Listing {
    id: String
    repoId: String
    title: String
    description: String
    repoName: String
    repoOwner: String
    repoOwnerAvatarUrl: String
    category: String
    type: String
    tags: [String]
    language: String
    stars: Int
    views: Int
    deploys: Int
    openIssues: Int
    watchers: Int
    createdAt: String
    updatedAt: String
    listedRelease: HubRelease
  }

  type HubRelease {
    id: String
    name: String
    tagName: String
    body: String
    readme: String
    branch: String
    license: String
    config: String
    deploys: Int
    iconUrl: String
    authorName: String
    createdAt: String
    releasedAt: String
    updatedAt: String
    build: HubBuild
  }

  type HubBuild {
    id: String
    imageName: String
  }

  "A public endpoint."
  type AiApiPublicConfig {
    id: String
    aiApiId: String
    modelName: String
    displayName: String
    description: String
    metadata: JSON
    isLive: Boolean
    createdAt: String
    updatedAt: String
  }

  "A model of the model repository."
  type RepositoryModel {
    id: String
    owner: String
    provider: String
    name: String
    status: String
    createdAt: String
    updatedAt: String
    users: [RepositoryModelUser]
    versions: [RepositoryModelVersion]
  }

  type RepositoryModelUser {
    userId: String
    credentialType: String
    credentialReference: String
    status: String
    updatedAt: String
  }

  type RepositoryModelVersion {
    hash: String
    status: String
    metadata: JSON
    createdAt: String
    updatedAt: String
  }

  "What changes of the model repository would answer."
  type RepositoryResult {
    success: Boolean
    message: String
    sessionId: String
    status: String
    model: RepositoryModel
    version: RepositoryModelVersion
    modelVersion: RepositoryModelVersion
    upload: RepositoryUpload
  }

  type RepositoryUpload {
    sessionId: String
    status: String
    uploadId: String
    bucket: String
    key: String
    keyPrefix: String
    partSizeBytes: String
    partCount: Int
    expiresInSeconds: Int
    parts: [RepositoryUploadPart]
    completeUrl: String
    abortUrl: String
  }

  type RepositoryUploadPart {
    partNumber: Int
    url: String
    expiresAt: String
  }

  "A machine that its owner rents out."
  type Machine {
    id: String
    name: String
    location: String
    listed: Boolean
    gpuType: GpuType
    gpuTotal: Int
    secureCloud: Boolean
    dataCenterId: String
  }

  type CpuType {
    id: String
    displayName: String
    manufacturer: String
    cores: Int
    threadsPerCore: Int
    groupId: String
  }

  extend type Query {
    "A task of an app."
    pod(input: PodFilter): Pod
    "Always empty: there is no hub."
    listings(input: ListingsInput): [Listing]
    "Always null, as listings."
    listing(id: String): Listing
    listingFromRepo(repoOwner: String, repoName: String): Listing
    "Always empty: there are no public endpoints."
    allAiApiPublicConfigs: [AiApiPublicConfig]
    "Always empty: there is no model repository. Workers find models that modelReferences of an endpoint names."
    models: [RepositoryModel]
    myModels: [RepositoryModel]
    "Always null, as myModels."
    myModel(owner: String, name: String): RepositoryModel
    "Always empty: cpuFlavors has what endpoints can name."
    cpuTypes: [CpuType]
    "Always empty: no machines are rented out."
    machines: [Machine]
  }

  extend type Mutation {
    "Starts a task of an app; any other pod is refused."
    podFindAndDeployOnDemand(input: PodFindAndDeployOnDemandInput): Pod
    deployCpuPod(input: deployCpuPodInput): Pod
    "Ends a task and forgets it."
    podTerminate(input: PodTerminateInput): Void
    "Refused, as everything else about pods."
    podRentInterruptable(input: PodRentInterruptableInput): Pod
    podEditJob(input: PodEditJobInput): Pod
    podStop(input: PodStopInput): Pod
    podResume(input: PodResumeInput): Pod
    podBidResume(input: PodBidResumeInput): Pod
    podRestart(input: PodRestartInput): Pod
    podReset(input: PodResetInput): Pod
    "Refused: a global volume is created over REST."
    globalStoreBucketCreate(input: GlobalStoreBucketCreateInput): GlobalStoreBucket
    "Refused, as everything about the model repository."
    addModelToRepo(input: AddModelToRepoInput): RepositoryResult
    removeModelFromRepo(input: RemoveModelFromRepoInput): RepositoryResult
    createModelRepoUpload(input: CreateModelRepoUploadInput): RepositoryResult
    completeModelRepoUpload(input: CompleteModelRepoUploadInput): RepositoryResult
    updateModelVersionStatus(hash: ID, status: ModelVersionStatus): RepositoryResult
  }

  scalar PodFilter
  scalar PodFindAndDeployOnDemandInput
  scalar PodRentInterruptableInput
  scalar deployCpuPodInput
  scalar PodEditJobInput
  scalar PodStopInput
  scalar PodResumeInput
  scalar PodBidResumeInput
  scalar PodRestartInput
  scalar PodResetInput
  scalar PodTerminateInput
  scalar GlobalStoreBucketCreateInput
  scalar ListingsInput
  scalar AddModelToRepoInput
  scalar RemoveModelFromRepoInput
  scalar CreateModelRepoUploadInput
  scalar CompleteModelRepoUploadInput
  scalar ModelVersionStatus
`
