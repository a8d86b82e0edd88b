/** The GraphQL schema, written by hand; names, types and defaults are those that RunPod's clients use. */
export const typeDefs = /* GraphQL */ `
  type Query {
    "The caller and what it owns; null for an anonymous caller."
    myself: User
  }

  type Mutation {
    "Creates an endpoint, or changes the one with this id; fields that are left out are kept."
    saveEndpoint(input: EndpointInput!): Endpoint!
    "Allowed when workersMin and workersMax are 0. Answers null."
    deleteEndpoint(id: String!): Void
    "Creates a template, or changes the one with this id; fields that are left out are kept."
    saveTemplate(input: SaveTemplateInput): PodTemplate
    "Allowed while no endpoint uses it. Answers null."
    deleteTemplate(templateName: String): Void
    secretCreate(input: SecretCreateInput!): Secret
    "Answers null."
    secretDelete(id: ID!): Void
  }

  "A value that is always null."
  scalar Void

  enum FlashBootType {
    OFF
    FLASHBOOT
    PRIORITY_FLASHBOOT
  }

  type User {
    id: String
    endpoints: [Endpoint]!
    endpoint(id: String!): Endpoint
    podTemplates: [PodTemplate]
    secrets: [Secret]
    serverlessDiscount: ServerlessDiscount
  }

  type ServerlessDiscount {
    discountFactor: Float
    type: String
    expirationDate: String
  }

  type Endpoint {
    id: String!
    name: String!
    type: String
    templateId: String
    template: PodTemplate
    gpuIds: String
    gpuCount: Int
    instanceIds: [String]
    computeType: String
    allowedCudaVersions: String
    minCudaVersion: String
    idleTimeout: Int
    locations: String
    networkVolumeId: String
    networkVolumeIds: [EndpointNetworkVolume]
    scalerType: String
    "A number of seconds for QUEUE_DELAY, of requests for REQUEST_COUNT."
    scalerValue: Float
    workersMin: Int
    workersMax: Int
    executionTimeoutMs: Int
    flashBootType: FlashBootType
    env: [EnvironmentVariable]
    version: Int
    userId: String
    createdAt: String
    pods: [Pod]
    "Always null: endpoints have no keys of their own."
    aiKey: String
    "Always null: there are no workers beyond those between min and max."
    workersStandby: Int
    networkVolume: NetworkVolume
  }

  type NetworkVolume {
    id: String
    dataCenterId: String
  }

  "A worker of an endpoint that has not ended."
  type Pod {
    id: String
    desiredStatus: String
  }

  type EndpointNetworkVolume {
    networkVolumeId: String
    dataCenterId: String
  }

  type EnvironmentVariable {
    key: String
    value: String
  }

  type PodTemplate {
    id: String!
    name: String!
    imageName: String
    dockerArgs: String
    containerDiskInGb: Int
    volumeInGb: Int
    volumeMountPath: String
    ports: String
    env: [EnvironmentVariable]
    readme: String
    isServerless: Boolean
    isPublic: Boolean
    containerRegistryAuthId: String
  }

  type Secret {
    id: ID!
    name: String!
    description: String
    createdAt: String
  }

  input EnvironmentVariableInput {
    key: String!
    value: String!
  }

  input EndpointNetworkVolumeInput {
    networkVolumeId: String
  }

  input EndpointTemplateInput {
    name: String
    imageName: String
    containerDiskInGb: Int
    dockerArgs: String
    env: [EnvironmentVariableInput]
    containerRegistryAuthId: String
    ports: String
  }

  input EndpointInput {
    id: String
    name: String!
    type: String
    templateId: String
    template: EndpointTemplateInput
    gpuIds: String
    gpuCount: Int
    instanceIds: [String]
    allowedCudaVersions: String
    minCudaVersion: String
    locations: String
    networkVolumeId: String
    networkVolumeIds: [EndpointNetworkVolumeInput]
    idleTimeout: Int
    scalerType: String
    scalerValue: Float
    workersMin: Int
    workersMax: Int
    executionTimeoutMs: Int
    flashBootType: FlashBootType
    env: [EnvironmentVariableInput]
  }

  input SaveTemplateInput {
    id: String
    name: String
    imageName: String
    dockerArgs: String
    containerDiskInGb: Int
    volumeInGb: Int
    volumeMountPath: String
    ports: String
    env: [EnvironmentVariableInput]
    readme: String
    isServerless: Boolean
    isPublic: Boolean
    startSsh: Boolean
    startJupyter: Boolean
    containerRegistryAuthId: String
  }

  input SecretCreateInput {
    name: String!
    value: String!
    description: String
  }
`
