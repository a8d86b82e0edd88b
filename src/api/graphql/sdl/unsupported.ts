/**
 * Pods and flash apps, which Runyard does not have. Clients get a sentence that says so, so their documents must be
 * valid: each input is a scalar that takes anything.
 */
export const unsupportedSdl = /* GraphQL */ `
  "A worker of an endpoint that has not ended; of pods there are none."
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
    machine: PodMachine
    runtime: PodRuntime
  }

  type PodMachine {
    podHostId: String
    gpuDisplayName: String
    location: String
    gpuType: GpuType
  }

  type PodRuntime {
    ports: [PodRuntimePort]
  }

  type PodRuntimePort {
    ip: String
    isIpPublic: Boolean
    privatePort: Int
    publicPort: Int
    type: String
  }

  type FlashApp {
    id: String
    name: String
    flashEnvironments: [FlashEnvironment]
    flashBuilds: [FlashBuild]
  }

  type FlashEnvironment {
    id: String
    name: String
    state: String
    createdAt: String
    activeBuildId: String
    activeArtifact: FlashArtifact
    endpoints: [Endpoint]
    networkVolumes: [NetworkVolume]
  }

  type FlashBuild {
    id: String
    objectKey: String
    createdAt: String
    manifest: JSON
  }

  type FlashArtifact {
    objectKey: String
    uploadUrl: String
    downloadUrl: String
    expiresAt: String
  }

  type FlashAuthRequest {
    id: String
    status: String
    expiresAt: String
    apiKey: String
  }

  type GlobalStoreBucket {
    id: String
    name: String
  }

  extend type Query {
    "Always null: there are no pods."
    pod(input: PodFilter): Pod
    "Refused, as everything about flash apps."
    flashApp(flashAppId: String!): FlashApp
    flashAppByName(flashAppName: String!): FlashApp
    flashEnvironment(flashEnvironmentId: String!): FlashEnvironment
    flashEnvironmentByName(input: FlashEnvironmentByNameInput!): FlashEnvironment
    flashBuild(flashBuildId: String!): FlashBuild
    flashAuthRequestStatus(flashAuthRequestId: String!): FlashAuthRequest
  }

  extend type Mutation {
    "Refused, as everything about pods."
    podFindAndDeployOnDemand(input: PodFindAndDeployOnDemandInput): Pod
    podRentInterruptable(input: PodRentInterruptableInput): Pod
    deployCpuPod(input: deployCpuPodInput): Pod
    podEditJob(input: PodEditJobInput): Pod
    podStop(input: PodStopInput): Pod
    podResume(input: PodResumeInput): Pod
    podBidResume(input: PodBidResumeInput): Pod
    podRestart(input: PodRestartInput): Pod
    podReset(input: PodResetInput): Pod
    podTerminate(input: PodTerminateInput): Void
    "Refused, as everything about flash apps."
    createFlashApp(input: CreateFlashAppInput): FlashApp
    createFlashEnvironment(input: CreateFlashEnvironmentInput): FlashEnvironment
    prepareFlashArtifactUpload(input: PrepareFlashArtifactUploadInput): FlashArtifact
    finalizeFlashArtifactUpload(input: FinalizeFlashArtifactUploadInput): FlashBuild
    updateFlashBuildManifest(input: UpdateFlashBuildManifestInput): FlashBuild
    deployBuildToEnvironment(input: DeployBuildToEnvironmentInput): FlashEnvironment
    deleteFlashApp(flashAppId: String): Void
    deleteFlashEnvironment(flashEnvironmentId: String): Void
    createFlashAuthRequest: FlashAuthRequest
    globalStoreBucketCreate(input: GlobalStoreBucketCreateInput): GlobalStoreBucket
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
  scalar FlashEnvironmentByNameInput
  scalar CreateFlashAppInput
  scalar CreateFlashEnvironmentInput
  scalar PrepareFlashArtifactUploadInput
  scalar FinalizeFlashArtifactUploadInput
  scalar UpdateFlashBuildManifestInput
  scalar DeployBuildToEnvironmentInput
  scalar GlobalStoreBucketCreateInput
`
