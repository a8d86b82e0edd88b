import { graphqlLines } from '../../dialect.ts'
import { TEMPLATE_MEMBERS } from '../../template-fields.ts'

const shown = graphqlLines(TEMPLATE_MEMBERS, 'shownLine')
const inputLines = graphqlLines(TEMPLATE_MEMBERS, 'inputLine')

/** The lines without those that have another place in the documents. */
function others({ name, image, args, diskGb, volumeGb, volumeMountPath, ports, portLabels, ...more }: typeof shown) {
  const { env, readme, category, isServerless, isPublic, registry, ...lines } = more
  return Object.values(lines).join('\n    ')
}

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
    ${shown.name}
    ${shown.image}
    ${shown.args}
    ${shown.diskGb}
    ${shown.volumeGb}
    ${shown.volumeMountPath}
    ${shown.ports}
    ${shown.portLabels}
    ${shown.env}
    ${shown.readme}
    ${shown.category}
    ${shown.isServerless}
    ${shown.isPublic}
    "Always false: there are no official templates here."
    isRunpod: Boolean
    ${shown.registry}
    ${others(shown)}
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
    ${inputLines.name}
    ${inputLines.image}
    ${inputLines.args}
    ${inputLines.diskGb}
    ${inputLines.volumeGb}
    ${inputLines.volumeMountPath}
    ${inputLines.ports}
    ${inputLines.portLabels}
    ${inputLines.env}
    ${inputLines.readme}
    ${inputLines.category}
    ${inputLines.isServerless}
    ${inputLines.isPublic}
    ${inputLines.registry}
    ${others(inputLines)}
    "Refused unless empty: put it into dockerArgs."
    startScript: String
    "Has no effect."
    advancedStart: Boolean
    "Has no effect."
    config: JSON
  }
`
