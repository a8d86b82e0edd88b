/** Queries and mutations. Arguments may be left out wherever a client declares its variable as nullable. */
export const operationSdl = /* GraphQL */ `
  type Query {
    "The caller and what it owns; null for an anonymous caller."
    myself: User
    "One of the caller's templates, or a public one; null when there is none."
    podTemplate(id: String!): PodTemplate
    "Public templates of all accounts. There are no official ones here."
    podTemplates(input: PodTemplateInput): [PodTemplate]
    gpuTypes(input: GpuTypeFilter): [GpuType]
    cpuFlavors(input: CpuFlavorInput): [CpuFlavor]
    dataCenters: [DataCenter]
    serverlessGpuPools: [ServerlessGpuPool]
  }

  type Mutation {
    "Creates an endpoint, or changes the one with this id; fields that are left out are kept."
    saveEndpoint(input: EndpointInput!): Endpoint!
    "Links an endpoint to another template."
    updateEndpointTemplate(input: UpdateEndpointTemplateInput): Endpoint
    "Allowed when workersMin and workersMax are 0. Answers null."
    deleteEndpoint(id: String!): Void
    "Creates a template, or changes the one with this id; fields that are left out are kept."
    saveTemplate(input: SaveTemplateInput): PodTemplate
    "Allowed while no endpoint uses it. Answers null."
    deleteTemplate(templateName: String): Void
    secretCreate(input: SecretCreateInput!): Secret
    "Workers that run keep the value that they were started with."
    secretValueUpdate(input: SecretValueUpdateInput!): Secret
    secretDescriptionUpdate(input: SecretDescriptionUpdateInput!): Secret
    "Answers null."
    secretDelete(id: ID!): Void
    saveRegistryAuth(input: SaveRegistryAuthInput): ContainerRegistryAuth
    updateRegistryAuth(input: UpdateRegistryAuthInput): ContainerRegistryAuth
    "Templates that use it pull without a credential from then on. Answers null."
    deleteRegistryAuth(registryAuthId: String): Void
    createNetworkVolume(input: CreateNetworkVolumeInput!): NetworkVolume
    "Renames it or makes it larger."
    updateNetworkVolume(input: UpdateNetworkVolumeInput!): NetworkVolume
    "Removes it with its files; allowed while no endpoint uses it. Answers null."
    deleteNetworkVolume(input: DeleteNetworkVolumeInput!): Void
    "Replaces the public SSH keys of the account."
    updateUserSettings(input: UpdateUserSettingsInput): User
  }

  "A value that is always null."
  scalar Void

  "Any JSON value."
  scalar JSON
`
