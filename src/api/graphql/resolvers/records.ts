import type { Caller } from '../../../core/accounts/permission.ts'
import { TEMPLATE_DEFAULTS } from '../../../core/endpoints/template.ts'
import { invalidRequest } from '../../../core/errors.ts'
import type { RegistryId, SecretId, TemplateId, VolumeId } from '../../../core/ids.ts'
import type { SavedTemplate, Templates } from '../../../services/endpoints/templates.ts'
import type { ApiParts } from '../../parts.ts'
import type { Writing } from '../context.ts'
import { readTemplateFields, type SaveTemplateFields } from '../inputs.ts'
import { registryView, secretView, templateView, volumeView } from '../views.ts'

/** Mutations on templates. */
export function templateMutations({ templates }: ApiParts, writing: Writing) {
  return {
    saveTemplate: writing(async (caller, { input }: { input?: SaveTemplateFields | null }, report) => {
      const saved = await saveTemplate(templates, caller, input ?? {})
      report(saved)
      return templateView(saved.template)
    }, 'reports'),
    deleteTemplate: writing(async (caller, { templateName }: { templateName?: string | null }) => {
      await templates.removeByName(caller.owner, templateName ?? '')
      return null
    }),
  }
}

async function saveTemplate(templates: Templates, caller: Caller, fields: SaveTemplateFields): Promise<SavedTemplate> {
  const { template: given, failures } = readTemplateFields(fields)
  if (fields.id) {
    if (failures.length > 0) throw invalidRequest(failures)
    return templates.save(caller, { id: fields.id as TemplateId, changes: given })
  }
  const missing = [
    ...(given.name === undefined ? ['name is needed'] : []),
    ...(given.image === undefined ? ['imageName is needed'] : []),
    ...(given.diskGb === undefined ? ['containerDiskInGb is needed'] : []),
    ...(given.volumeGb === undefined ? ['volumeInGb is needed'] : []),
  ]
  const { name = '', image = '', diskGb = 0, volumeGb = 0 } = given
  if (missing.length + failures.length > 0) throw invalidRequest([...missing, ...failures])
  return templates.save(caller, { config: { ...TEMPLATE_DEFAULTS, ...given, name, image, diskGb, volumeGb } })
}

export interface SecretFields {
  readonly name: string
  readonly value: string
  readonly description?: string | null
}

/** Mutations on secrets. */
export function secretMutations({ secrets }: ApiParts, writing: Writing) {
  return {
    secretCreate: writing(async (caller, { input: { name, value, description } }: { input: SecretFields }) =>
      secretView(await secrets.create(caller.owner, name, value, description ?? null)),
    ),
    secretValueUpdate: writing(async (caller, { input: { id, value } }: { input: { id: string; value: string } }) =>
      secretView(await secrets.update(caller.owner, id as SecretId, { value })),
    ),
    secretDescriptionUpdate: writing(
      async (caller, { input: { id, description } }: { input: { id: string; description?: string | null } }) =>
        secretView(await secrets.update(caller.owner, id as SecretId, { description: description ?? null })),
    ),
    secretDelete: writing(async (caller, { id }: { id: string }) => {
      await secrets.remove(caller.owner, id as SecretId)
      return null
    }),
  }
}

export interface RegistryFields {
  readonly name: string
  readonly username: string
  readonly password: string
}

type RegistryChange = { readonly id: string } & { readonly [Name in keyof RegistryFields]?: string | null }

/** Mutations on registry credentials. */
export function registryMutations({ registries }: ApiParts, writing: Writing) {
  return {
    saveRegistryAuth: writing(async (caller, { input }: { input?: RegistryFields | null }) => {
      if (input == null) throw invalidRequest(['input is needed'])
      return registryView(await registries.create(caller.owner, input))
    }),
    updateRegistryAuth: writing(async (caller, { input }: { input?: RegistryChange | null }) => {
      if (input == null) throw invalidRequest(['input is needed'])
      const { id, name, username, password } = input
      const changes = {
        ...(name == null ? {} : { name }),
        ...(username == null ? {} : { username }),
        ...(password == null ? {} : { password }),
      }
      return registryView(await registries.update(caller.owner, id as RegistryId, changes))
    }),
    deleteRegistryAuth: writing(async (caller, { registryAuthId }: { registryAuthId?: string | null }) => {
      await registries.remove(caller.owner, (registryAuthId ?? '') as RegistryId)
      return null
    }),
  }
}

export interface VolumeFields {
  readonly name?: string | null
  readonly size?: number | null
}

/** Mutations on network volumes. */
export function volumeMutations({ volumes }: ApiParts, writing: Writing) {
  return {
    createNetworkVolume: writing(async (caller, { input }: { input: VolumeFields & { dataCenterId: string } }) => {
      const { name, size, dataCenterId: dataCenter } = input
      const missing = [...(name == null ? ['name is needed'] : []), ...(size == null ? ['size is needed'] : [])]
      if (missing.length > 0) throw invalidRequest(missing)
      return volumeView(await volumes.create(caller.owner, { name: name!, sizeGb: size!, dataCenter }))
    }),
    updateNetworkVolume: writing(async (caller, { input }: { input: VolumeFields & { id: string } }) => {
      const { id, name, size } = input
      const changes = { ...(name == null ? {} : { name }), ...(size == null ? {} : { sizeGb: size }) }
      return volumeView(await volumes.update(caller.owner, id as VolumeId, changes))
    }),
    deleteNetworkVolume: writing(async (caller, { input }: { input: { id: string } }) => {
      await volumes.remove(caller.owner, input.id as VolumeId)
      return null
    }),
  }
}
