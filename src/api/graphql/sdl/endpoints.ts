import { graphqlLines } from '../../dialect.ts'
import { ENDPOINT_MEMBERS } from '../../endpoint-fields.ts'

const shown = graphqlLines(ENDPOINT_MEMBERS, 'shownLine')
const inputLines = graphqlLines(ENDPOINT_MEMBERS, 'inputLine')

/** The lines without those that have another place in the documents. */
function others({ name, workersMin, workersMax, idleTimeoutS, locations, ...lines }: typeof shown): string {
  return Object.values(lines).join('\n    ')
}

/** Endpoints. */
export const endpointSdl = /* GraphQL */ `
  enum FlashBootType {
    OFF
    FLASHBOOT
    PRIORITY_FLASHBOOT
  }

  enum EndpointPriority {
    low
    normal
    high
  }

  type Endpoint {
    id: String!
    ${shown.name}
    "QB for a queue, LB for load balancing."
    type: String
    templateId: String
    template: PodTemplate
    "Pools, and types taken out of them, each with a hyphen in front; null for a CPU endpoint."
    gpuIds: String
    gpuCount: Int
    "Share of the memory of one GPU for each worker, in GB; null for whole GPUs, and for a share that is learned."
    gpuMemoryGb: Float
    "True if the share is learned from what workers use."
    gpuMemoryAuto: Boolean!
    "Each flavor-vcpus-memory; empty for a GPU endpoint."
    instanceIds: [String]
    computeType: String
    allowedCudaVersions: String
    minCudaVersion: String
    ${shown.idleTimeoutS}
    ${shown.locations}
    "The first of networkVolumeIds."
    networkVolumeId: String
    networkVolumeIds: [EndpointNetworkVolume]
    networkVolume: NetworkVolume
    networkVolumes: [NetworkVolume]
    scalerType: String
    "A number of seconds for QUEUE_DELAY, of requests for REQUEST_COUNT."
    scalerValue: Float
    ${shown.workersMin}
    ${shown.workersMax}
    "Always 0: there are no workers beyond those between min and max."
    workersStandby: Int
    ${others(shown)}
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
    ${inputLines.name}
    "QB (default) or LB."
    type: String
    templateId: String
    "A template for this endpoint alone, which is deleted with it."
    template: EndpointTemplateInput
    gpuIds: String
    gpuCount: Int
    "A share of one GPU instead of whole GPUs, in GB; 0 for whole GPUs. Excludes gpuMemoryAuto: true."
    gpuMemoryGb: Float
    "True for a share that is learned from what workers use, false for whole GPUs."
    gpuMemoryAuto: Boolean
    instanceIds: [String]
    "A comma list; excludes minCudaVersion."
    allowedCudaVersions: String
    minCudaVersion: String
    ${inputLines.locations}
    networkVolumeId: String
    networkVolumeIds: [NetworkVolumeIdsInput]
    "A global volume, which stands alone, or network volumes as in networkVolumeIds."
    volumes: [EndpointVolumeInput]
    ${inputLines.idleTimeoutS}
    "QUEUE_DELAY (default of QB) or REQUEST_COUNT (default of LB)."
    scalerType: String
    "Takes variables of type Int, too, as everything of type Float does."
    scalerValue: Float
    ${inputLines.workersMin}
    ${inputLines.workersMax}
    "Has no effect."
    workersStandby: Int
    ${others(inputLines)}
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
