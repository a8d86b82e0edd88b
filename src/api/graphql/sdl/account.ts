/** The account of a caller, its secrets, registries and volumes. */
export const accountSdl = /* GraphQL */ `
  type User {
    id: String
    "Public SSH keys, one a line."
    pubKey: String
    "Always null: accounts have no address."
    email: String
    "Always 0: nothing is paid here."
    clientBalance: Float
    "What the workers that run now cost for an hour, in US dollars; 0 unless the server was given prices."
    currentSpendPerHr: Float
    "Always 0, as clientBalance."
    spendLimit: Float
    notifyPodsStale: Boolean
    notifyPodsGeneral: Boolean
    notifyLowBalance: Boolean
    endpoints: [Endpoint]!
    "Null when there is no such endpoint."
    endpoint(id: String!): Endpoint
    "Templates of this account, without those that belong to one endpoint alone."
    podTemplates: [PodTemplate]
    secrets: [Secret!]!
    networkVolumes: [NetworkVolume]
    containerRegistryCreds: [ContainerRegistryAuth]
    serverlessDiscount: ServerlessDiscount
    "Tasks of apps; there are no other pods."
    pods: [Pod]
    flashApps: [FlashApp]
    "Its global volumes."
    globalStoreBuckets: [GlobalStoreBucket]
  }

  type ServerlessDiscount {
    discountFactor: Float
    type: String
    expirationDate: String
  }

  input UpdateUserSettingsInput {
    "Public SSH keys, one a line."
    pubKey: String
  }

  "A secret without its value, which nothing shows."
  type Secret {
    id: ID!
    name: String!
    description: String
    createdAt: String!
    "When the value was changed last; null while it is the first one."
    updatedAt: String
  }

  input SecretCreateInput {
    name: String!
    value: String!
    description: String
  }

  input SecretValueUpdateInput {
    id: ID!
    value: String!
  }

  input SecretDescriptionUpdateInput {
    id: ID!
    description: String
  }

  "A credential for private images without its password, which nothing shows."
  type ContainerRegistryAuth {
    id: String
    name: String
  }

  input SaveRegistryAuthInput {
    name: String!
    username: String!
    password: String!
  }

  input UpdateRegistryAuthInput {
    id: String!
    name: String
    username: String
    password: String
  }

  "A program that asks for a key, which a person approves in the console."
  type FlashAuthRequest {
    id: String
    "PENDING, APPROVED, CONSUMED (the key was handed out before), DENIED or EXPIRED."
    status: String
    expiresAt: String
    "The key, in the first answer after the approval; null in all others."
    apiKey: String
  }

  extend type Query {
    "Needs no key: the id is a secret of the program."
    flashAuthRequestStatus(flashAuthRequestId: String!): FlashAuthRequest
  }

  extend type Mutation {
    "Needs no key. A person approves the request in the console, at /flash/login?request={id}."
    createFlashAuthRequest: FlashAuthRequest
  }

  type NetworkVolume {
    id: String
    name: String
    "In GB, as it was asked for."
    size: Int
    dataCenterId: String
    storageClusterId: String
    storageType: String
  }

  input CreateNetworkVolumeInput {
    name: String
    size: Int
    dataCenterId: String!
    userId: String
    isNextGenStorage: Boolean
  }

  input UpdateNetworkVolumeInput {
    id: String!
    name: String
    size: Int
  }

  input DeleteNetworkVolumeInput {
    id: String!
  }
`
