/** Hardware and places. Availability is that of the server's machine. */
export const catalogSdl = /* GraphQL */ `
  enum Compliance {
    GDPR
    ISO_IEC_27001
    ISO_14001
    PCI_DSS
    HITRUST
    SOC_1_TYPE_2
    SOC_2_TYPE_2
    SOC_3_TYPE_2
    ITAR
    FISMA_HIGH
    HIPAA
    RENEWABLE
  }

  enum MachineProduct {
    PODCLOUD
    CLUSTER
    SERVERLESS
  }

  "All that is given must hold."
  input GpuTypeFilter {
    id: String
    ids: [String!]
    cluster: Boolean
  }

  "A GPU type. Nothing is sold here, so prices are 0 or null."
  type GpuType {
    id: String
    displayName: String
    manufacturer: String
    memoryInGb: Int
    cudaCores: Int
    secureCloud: Boolean
    communityCloud: Boolean
    securePrice: Float
    communityPrice: Float
    clusterPrice: Float
    oneWeekPrice: Float
    oneMonthPrice: Float
    threeMonthPrice: Float
    sixMonthPrice: Float
    oneYearPrice: Float
    secureSpotPrice: Float
    communitySpotPrice: Float
    throughput: Int
    "How many this machine has."
    maxGpuCount: Int
    maxGpuCountSecureCloud: Int
    maxGpuCountCommunityCloud: Int
    minPodGpuCount: Int
    "Always empty: there are no clusters."
    nodeGroupGpuSizes: [Int]
    "Always empty, as nodeGroupGpuSizes."
    nodeGroupDatacenters: [DataCenter]
    lowestPrice(input: GpuLowestPriceInput): LowestPrice
  }

  "Only gpuCount, secureCloud, minMemoryInGb and minVcpuCount have an effect."
  input GpuLowestPriceInput {
    gpuCount: Int
    countryCode: String
    dataCenterId: String
    includeAiApi: Boolean
    minDisk: Int
    minDownload: Int
    minMemoryInGb: Int
    minUpload: Int
    minVcpuCount: Int
    secureCloud: Boolean
    supportPublicIp: Boolean
    totalDisk: Int
    cudaVersion: String
    allowedCudaVersions: [String]
    minCudaVersion: String
    compliance: [Compliance]
    isCluster: Boolean
    podCount: Int
    throughput: Int
    globalNetwork: Boolean
    machineProducts: [MachineProduct]
  }

  "The stock and the price of this machine. Unknown values are null."
  type LowestPrice {
    gpuName: String
    gpuTypeId: String
    minimumBidPrice: Float
    uninterruptablePrice: Float
    clusterPrice: Float
    rentalPercentage: Float
    rentedCount: Int
    totalCount: Int
    "GB of memory of this machine, which its workers share; null where stockStatus is."
    minMemory: Int
    "vCPUs of this machine, as minMemory."
    minVcpu: Int
    minDisk: Int
    minDownload: Int
    minUpload: Int
    countryCode: String
    supportPublicIp: Boolean
    compliance: [Compliance]
    "How many this machine has."
    maxGpuCount: Int
    "How many of them no worker has; null where a platform places workers."
    maxUnreservedGpuCount: Int
    "The numbers of them that a worker can have now."
    availableGpuCounts: [Int]
    "The data centers that endpoints can name, all of them with the GPUs of this machine."
    gpuTypeDatacenters: [GpuTypeDataCenterAvailability]
    "Always empty: images bring a CUDA version with them, and what the driver of a machine takes is looked at when a worker is placed."
    gpuTypeCudaVersions: [GpuTypeCudaVersion]
    "High, Medium or Low; null when not one worker with so many of them can run."
    stockStatus: String
  }

  enum Availability {
    AVAILABLE
    UNAVAILABLE
  }

  type GpuTypeDataCenterAvailability {
    dataCenterId: String
    supportNetworkVolumes: Boolean
    availability: Availability
  }

  type GpuTypeCudaVersion {
    cudaVersion: String
    availability: Availability
  }

  input CpuFlavorInput {
    id: String
    slsOnly: Boolean
    isSls: Boolean
  }

  type CpuFlavor {
    id: String
    groupId: String
    groupName: String
    displayName: String
    minVcpu: Float
    maxVcpu: Int
    vcpuBurstable: Boolean
    "GB of memory per vCPU."
    ramMultiplier: Float
    diskLimitPerVcpu: Int
    specifics(input: SpecificsInput): CpuSpecifics
  }

  input SpecificsInput {
    dataCenterId: String
    "flavor-vcpus-memory, such as cpu3g-4-16."
    instanceId: String
    isSls: Boolean
  }

  type CpuSpecifics {
    "High, Medium or Low; null when not one such worker can run."
    stockStatus: String
    securePrice: Float
    slsPrice: Float
  }

  enum DataCenterRegion {
    NORTH_AMERICA
    ASIA
    EUROPE
    MIDDLE_EAST
    AFRICA
    SOUTH_AMERICA
    OCEANIA
    ANTARCTICA
    UNKNOWN
  }

  "A name that endpoints and volumes can carry; the GPUs of each are those of this machine."
  type DataCenter {
    id: String
    name: String
    "Country code."
    location: String
    listed: Boolean
    storageSupport: Boolean
    globalNetwork: Boolean
    region: DataCenterRegion
    compliance: [Compliance]
    gpuAvailability(input: GpuAvailabilityInput): [GpuAvailability]
  }

  "Only gpuCount has an effect."
  input GpuAvailabilityInput {
    gpuCount: Int
    minDisk: Int
    minMemoryInGb: Int
    minVcpuCount: Int
    secureCloud: Boolean
    allowedCudaVersions: [String]
    minCudaVersion: String
    includeAiApi: Boolean
    machineProducts: [MachineProduct]
  }

  type GpuAvailability {
    id: String
    available: Boolean
    "High, Medium or Low; null when there is none."
    stockStatus: String
    gpuTypeId: String
    gpuTypeDisplayName: String
    displayName: String
  }

  "A value of gpuIds, with the types that it stands for."
  type ServerlessGpuPool {
    id: String!
    gpuTypeIds: [String!]!
    memoryInGb: Int
  }
`
