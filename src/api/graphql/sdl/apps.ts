/** Apps of RunPod's SDK 2.0, which its GraphQL calls flash apps: their environments, builds and uploads. */
export const appsSdl = /* GraphQL */ `
  "Functions that were deployed together."
  type FlashApp {
    id: String
    name: String
    createdAt: String
    flashEnvironments: [FlashEnvironment]
    "The newest 1,000."
    flashBuilds: [FlashBuild]
  }

  "A set of endpoints of an app, whose names are unique in it."
  type FlashEnvironment {
    id: String
    name: String
    "DEPLOYED with an active build, else EMPTY."
    state: String
    createdAt: String
    "The build that was deployed last. Each endpoint goes on with the build that its variables name."
    activeBuildId: String
    "Always null: workers get their build from the server."
    activeArtifact: FlashArtifact
    endpoints: [Endpoint]
    "Network volumes of its endpoints."
    networkVolumes: [NetworkVolume]
  }

  "Code and packages, as one archive."
  type FlashBuild {
    id: String
    objectKey: String
    createdAt: String
    "What the client wrote about it."
    manifest: JSON
  }

  type FlashArtifact {
    objectKey: String
    "Takes the archive with PUT, without a key."
    uploadUrl: String
    "Always null."
    downloadUrl: String
    expiresAt: String
  }

  input FlashEnvironmentByNameInput {
    flashAppId: String!
    name: String!
  }

  input CreateFlashAppInput {
    name: String!
  }

  input CreateFlashEnvironmentInput {
    flashAppId: String!
    name: String!
  }

  input PrepareFlashArtifactUploadInput {
    flashAppId: String!
    "The exact size of the archive in bytes."
    tarballSize: Float!
  }

  input FinalizeFlashArtifactUploadInput {
    flashAppId: String!
    objectKey: String!
    manifest: JSON!
  }

  input UpdateFlashBuildManifestInput {
    flashBuildId: String!
    manifest: JSON!
  }

  input DeployBuildToEnvironmentInput {
    flashEnvironmentId: String!
    flashBuildId: String!
  }

  extend type Query {
    "Null when there is none, as all of these."
    flashApp(flashAppId: String!): FlashApp
    flashAppByName(flashAppName: String!): FlashApp
    flashEnvironment(flashEnvironmentId: String!): FlashEnvironment
    flashEnvironmentByName(input: FlashEnvironmentByNameInput!): FlashEnvironment
    flashBuild(flashBuildId: String!): FlashBuild
  }

  extend type Mutation {
    createFlashApp(input: CreateFlashAppInput!): FlashApp
    createFlashEnvironment(input: CreateFlashEnvironmentInput!): FlashEnvironment
    "Announces an archive: gzip and tar, files and folders alone."
    prepareFlashArtifactUpload(input: PrepareFlashArtifactUploadInput!): FlashArtifact
    "Makes a build of an archive that was sent, and unpacks it."
    finalizeFlashArtifactUpload(input: FinalizeFlashArtifactUploadInput!): FlashBuild
    updateFlashBuildManifest(input: UpdateFlashBuildManifestInput!): FlashBuild
    "Makes a build the active one. Endpoints change their build when they are saved."
    deployBuildToEnvironment(input: DeployBuildToEnvironmentInput!): FlashEnvironment
    "Removes an app with its builds; allowed when it has no environments. Answers null."
    deleteFlashApp(flashAppId: String!): Void
    "Allowed when it has no endpoints. Answers null."
    deleteFlashEnvironment(flashEnvironmentId: String!): Void
  }
`
