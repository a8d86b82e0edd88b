import type { Template, TemplateInput } from '../../core/endpoints/template.ts'
import { parseContainerArgs } from '../../core/workers/command-line.ts'
import { readFields, v1Members } from '../dialect.ts'
import type { Members } from '../rest/route.ts'
import { TEMPLATE_MEMBERS } from '../template-fields.ts'
import type { TemplateFields } from './schemas.ts'

type Fields = Partial<Members<typeof TemplateFields>>

/** The requested changes. @param args current command line of the template, which may be replaced in parts */
export function templateChanges(fields: Fields, args: string): Partial<TemplateInput> {
  return { ...readFields<TemplateInput>(TEMPLATE_MEMBERS, 'v1', fields), ...commandLine(fields, args) }
}

/**
 * Stores lists of words as JSON text, as the other surfaces accept it. Lists equal to the shown ones leave the command
 * line as it is, and so does its text as one word, as earlier releases showed it.
 */
function commandLine({ dockerEntrypoint, dockerStartCmd }: Fields, args: string): Partial<TemplateInput> {
  if (dockerEntrypoint === undefined && dockerStartCmd === undefined) return {}
  const shown = shownWords(args)
  const entrypoint = dockerEntrypoint ?? shown.entrypoint
  const cmd = dockerStartCmd ?? shown.cmd
  if (isSame(entrypoint, shown.entrypoint) && (isSame(cmd, shown.cmd) || (args !== '' && isSame(cmd, [args]))))
    return {}
  if (entrypoint.length === 0 && cmd.length === 0) return { args: '' }
  return {
    args: JSON.stringify({ ...(cmd.length > 0 ? { cmd } : {}), ...(entrypoint.length > 0 ? { entrypoint } : {}) }),
  }
}

/**
 * The words of a command line in its two parts. One that cannot be read, so that no worker starts with it, is one
 * word.
 */
function shownWords(args: string): { readonly entrypoint: readonly string[]; readonly cmd: readonly string[] } {
  try {
    const { entrypoint, cmd } = parseContainerArgs(args)
    return { entrypoint: entrypoint ?? [], cmd: cmd ?? [] }
  } catch {
    return { entrypoint: [], cmd: [args] }
  }
}

function isSame(some: readonly string[], others: readonly string[]): boolean {
  return some.length === others.length && some.every((item, index) => item === others[index])
}

/** A template as this version shows it. */
export function templateView(template: Template) {
  const { entrypoint, cmd } = shownWords(template.args)
  const { name, imageName, containerDiskInGb, volumeInGb, volumeMountPath, ...rest } = v1Members(
    TEMPLATE_MEMBERS,
    template,
  )
  const { env, ports, category, readme, containerRegistryAuthId, ...flags } = rest
  return {
    id: template.id,
    name,
    imageName,
    containerDiskInGb,
    volumeInGb,
    volumeMountPath,
    dockerEntrypoint: entrypoint,
    dockerStartCmd: cmd,
    env,
    ports,
    ...flags,
    isRunpod: false,
    category,
    readme,
    containerRegistryAuthId,
  }
}
