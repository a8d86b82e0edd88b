/** Endpoints. */
export const endpointSdl = /* GraphQL */ `
  enum FlashBootType {
    OFF
    FLASHBOOT
    PRIORITY_FLASHBOOT
  }

  type Endpoint {
    id: String!
    name: String!
    "QB for a queue, LB for load balancing."
    type: String
    templateId: String
    template: PodTemplate
    "Pools, and types taken out of them, each with a hyphen in front; null for a CPU endpoint."
    gpuIds: String
    gpuCount: Int
    "Each flavor-vcpus-memory; empty for a GPU endpoint."
    instanceIds: [String]
    computeType: String
    allowedCudaVersions: String
    minCudaVersion: String
    idleTimeout: Int
    "Country codes and data centers, as they were given; empty for anywhere."
    locations: String
    "The first of networkVolumeIds."
    networkVolumeId: String
    networkVolumeIds: [EndpointNetworkVolume]
    networkVolume: NetworkVolume
    networkVolumes: [NetworkVolume]
    scalerType: String
    "A number of seconds for QUEUE_DELAY, of requests for REQUEST_COUNT."
    scalerValue: Float
    workersMin: Int
    workersMax: Int
    "Always 0: there are no workers beyond those between min and max."
    workersStandby: Int
    workersPFBTarget: Int
    executionTimeoutMs: Int
    flashBootType: FlashBootType
    "Variables of this endpoint alone; they win over the template's."
    env: [EnvironmentVariable]
    modelReferences: [String]
    "Origins of web pages that may call its job operations; * for all."
    corsOrigins: [String]
    "The own domain of a load-balancing endpoint."
    domain: String
    compliance: [Compliance]
    flashEnvironmentId: String
    "Grows with each change that workers must see."
    version: Int
    userId: String
    createdAt: String
    "A key that opens the jobs of this endpoint and nothing else; null for a caller who may not write them."
    aiKey: String
    "Its workers that have not ended."
    pods: [Pod]
    "Always null: images are not built here."
    activeBuildid: String
    "Always null."
    idePodId: String
  }

  type EndpointNetworkVolume {
    networkVolumeId: String
    dataCenterId: String
  }

  type EnvironmentVariable {
    key: String
    value: String
  }

  input EnvironmentVariableInput {
    key: String!
    value: String!
  }

  input NetworkVolumeIdsInput {
    networkVolumeId: String
  }

  input EndpointVolumeInput {
    volumeId: String
    volumeType: String
  }

  "Needed to create one: name, templateId or template, and gpuIds or instanceIds. An empty string means none."
  input EndpointInput {
    id: String
    name: String!
    "QB (default) or LB."
    type: String
    templateId: String
    "A template for this endpoint alone, which is deleted with it."
    template: EndpointTemplateInput
    gpuIds: String
    gpuCount: Int
    instanceIds: [String]
    "A comma list; excludes minCudaVersion."
    allowedCudaVersions: String
    minCudaVersion: String
    locations: String
    networkVolumeId: String
    networkVolumeIds: [NetworkVolumeIdsInput]
    "Refused unless empty: there are no global volumes. Use networkVolumeIds."
    volumes: [EndpointVolumeInput]
    idleTimeout: Int
    "QUEUE_DELAY (default of QB) or REQUEST_COUNT (default of LB)."
    scalerType: String
    "Takes variables of type Int, too, as everything of type Float does."
    scalerValue: Float
    workersMin: Int
    workersMax: Int
    "Has no effect."
    workersStandby: Int
    workersPFBTarget: Int
    "0 means as if left out."
    executionTimeoutMs: Int
    flashBootType: FlashBootType
    env: [EnvironmentVariableInput]
    modelReferences: [String]
    "Origins of web pages that may call its job operations; * for all."
    corsOrigins: [String]
    "The own domain of a load-balancing endpoint, such as chat.example.org; empty for none."
    domain: String
    compliance: [Compliance]
    flashEnvironmentId: String
    "Has no effect."
    bindEndpoint: Boolean
    "Refused unless empty: use modelReferences."
    modelName: String
    "Refused unless empty: there is no hub."
    hubReleaseId: String
    "Refused unless null: images are not built here."
    repo: JSON
    "Refused unless null: use network volumes."
    cloudStorageConfig: JSON
  }

  input EndpointTemplateInput {
    name: String
    imageName: String
    containerDiskInGb: Int
    containerRegistryAuthId: String
    dockerArgs: String
    env: [EnvironmentVariableInput]
    ports: String
    readme: String
    volumeInGb: Int
    volumeMountPath: String
    isServerless: Boolean
    startJupyter: Boolean
    startSsh: Boolean
    "Refused unless empty: put it into dockerArgs."
    startScript: String
    "Has no effect."
    advancedStart: Boolean
    "Has no effect."
    config: JSON
  }

  input UpdateEndpointTemplateInput {
    endpointId: String!
    templateId: String!
  }
`
