/** Templates. */
export const templateSdl = /* GraphQL */ `
  enum TemplateCategory {
    CPU
    "The same as NVIDIA."
    GPU
    NVIDIA
    AMD
  }

  type PodTemplate {
    id: String!
    name: String!
    imageName: String
    dockerArgs: String
    containerDiskInGb: Int
    volumeInGb: Int
    volumeMountPath: String
    "A comma list of port/protocol."
    ports: String
    portsConfig: [PortConfig]
    env: [EnvironmentVariable]
    readme: String
    category: String
    isServerless: Boolean
    isPublic: Boolean
    "Always false: there are no official templates here."
    isRunpod: Boolean
    containerRegistryAuthId: String
    startSsh: Boolean
    startJupyter: Boolean
    "Always empty."
    startScript: String
    "Always false."
    advancedStart: Boolean
  }

  "What people call a port."
  type PortConfig {
    port: String
    name: String
  }

  input PortConfigInput {
    port: String!
    name: String!
  }

  input PodTemplateInput {
    isRunpod: Boolean
  }

  "Needed to create one: name, imageName, containerDiskInGb and volumeInGb, which is 0 with isServerless."
  input SaveTemplateInput {
    id: String
    "Unique in the account."
    name: String
    "dir:path for a folder on the server's machine, else an image reference."
    imageName: String
    dockerArgs: String
    containerDiskInGb: Int
    volumeInGb: Int
    volumeMountPath: String
    ports: String
    portsConfig: [PortConfigInput]
    env: [EnvironmentVariableInput]
    readme: String
    category: TemplateCategory
    isServerless: Boolean
    isPublic: Boolean
    containerRegistryAuthId: String
    startSsh: Boolean
    startJupyter: Boolean
    "Refused unless empty: put it into dockerArgs."
    startScript: String
    "Has no effect."
    advancedStart: Boolean
    "Has no effect."
    config: JSON
  }
`
