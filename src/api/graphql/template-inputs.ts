import type { TemplateInput } from '../../core/endpoints/template.ts'
import { readFields } from '../dialect.ts'
import { TEMPLATE_MEMBERS } from '../template-fields.ts'

/** Fields that may be left out or null. */
export type GivenTemplateInput<Fields> = { readonly [Name in keyof Fields]?: Fields[Name] | null }

/** The hand-made members of a template in saveTemplate and saveEndpoint, as clients send them. */
export type SaveTemplateFields = GivenTemplateInput<{
  id: string
  volumeInGb: number
  isServerless: boolean
  startScript: string
}>

/** The result of reading an input, with all problems of its form. */
export interface TemplateReading {
  readonly template: Partial<TemplateInput>
  readonly failures: readonly string[]
}

/** The template fields of an input. Omitted fields stay omitted. */
export function readTemplateFields(fields: SaveTemplateFields): TemplateReading {
  const template = readFields<TemplateInput>(TEMPLATE_MEMBERS, 'graphql', fields)
  return { template, failures: fields.startScript ? [NO_START_SCRIPT] : [] }
}

const NO_START_SCRIPT = 'startScript is not supported; put what it does into dockerArgs or the image'
