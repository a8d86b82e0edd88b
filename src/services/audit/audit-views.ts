import type { AuditObject } from '../../core/audit/entry.ts'
import type { AuditView, ShownValue } from '../../core/audit/field-change.ts'
import { ENDPOINT_FIELDS, type Endpoint } from '../../core/endpoints/endpoint.ts'
import type { FieldTable } from '../../core/endpoints/field.ts'
import { TEMPLATE_FIELDS, type Template } from '../../core/endpoints/template.ts'
import type {
  AppId,
  BuildId,
  EndpointId,
  EnvironmentId,
  KeyId,
  OwnerId,
  RegistryId,
  SecretId,
  TemplateId,
  VolumeId,
} from '../../core/ids.ts'
import type { Ports } from '../../ports/ports.ts'

type Fields = Readonly<Record<string, ShownValue | undefined>>

/**
 * Objects as the audit log shows them: names and numbers; of variables only the names; of texts that may hold a
 * secret only the fact of a change.
 */
export class AuditViews {
  readonly #store

  constructor({ store }: Ports) {
    this.#store = store
  }

  /** The present object of any account; null for an object that does not exist, or a kind without a view. */
  async find(owner: OwnerId, { kind, id }: AuditObject): Promise<AuditView | null> {
    switch (kind) {
      case 'endpoint':
        return this.#endpoint(id as EndpointId)
      case 'template': {
        const template = await this.#store.templates.find(owner, id as TemplateId)
        return template === null ? null : templateView(template)
      }
      case 'registry':
        return this.#registry(owner, id as RegistryId)
      case 'secret':
        return this.#secret(owner, id as SecretId)
      case 'volume': {
        const volume = await this.#store.volumes.find(owner, id as VolumeId)
        if (volume === null) return null
        const { name, sizeGb, dataCenter, type } = volume
        return view({ name, sizeGb, dataCenter, type })
      }
      case 'app': {
        const app = await this.#store.apps.find(owner, id as AppId)
        return app === null ? null : view({ name: app.name })
      }
      case 'environment': {
        const environment = await this.#store.apps.findEnvironment(owner, id as EnvironmentId)
        if (environment === null) return null
        const { appId, name, activeBuildId } = environment
        return view({ appId, name, activeBuildId })
      }
      case 'build': {
        const build = await this.#store.appBuilds.find(owner, id as BuildId)
        return build === null
          ? null
          : view({ appId: build.appId, bytes: build.bytes, unpackedBytes: build.unpackedBytes })
      }
      case 'key':
        return this.#key(id as KeyId)
      case 'account':
        return this.#account(id as OwnerId)
      default:
        return null
    }
  }

  async #endpoint(id: EndpointId): Promise<AuditView | null> {
    const endpoint = await this.#store.endpoints.find(id)
    if (endpoint === null) return null
    return endpointView(endpoint, await this.#store.templates.find(endpoint.owner, endpoint.templateId))
  }

  async #registry(owner: OwnerId, id: RegistryId): Promise<AuditView | null> {
    const registry = await this.#store.registries.find(owner, id)
    if (registry === null) return null
    const { name, username } = registry
    return view({ name, username }, { password: await this.#store.registries.sealedPassword(owner, id) })
  }

  async #secret(owner: OwnerId, id: SecretId): Promise<AuditView | null> {
    const secret = await this.#store.secrets.find(owner, id)
    if (secret === null) return null
    const { name, description, createdAtMs, valueUpdatedAtMs } = secret
    return view({ name }, { description, value: valueUpdatedAtMs ?? createdAtMs })
  }

  async #key(id: KeyId): Promise<AuditView | null> {
    const key = await this.#store.keys.find(id)
    if (key === null) return null
    const { name, kind, owner, scope, exempt, disabled, expiresAtMs, endpointId, hash, limits, accounting } = key
    const plain = {
      name,
      kind,
      owner,
      exempt,
      disabled,
      expiresAtMs,
      endpointId,
      ...(limits && { limits }),
      ...(accounting && { accounting }),
    }
    return view({ ...plain, scope: plainValue(scope) }, { key: hash })
  }

  async #account(id: OwnerId): Promise<AuditView | null> {
    const account = await this.#store.accounts.find(id)
    if (account === null) return null
    const { name, deleteRunningEndpoints, limits } = account
    const sshKeys = await this.#store.accounts.sshKeys(id)
    return view({ name, deleteRunningEndpoints, limits: plainValue(limits) }, { sshKeys })
  }
}

/** An endpoint as the audit log shows it. @param template its template; null for a deleted one */
export function endpointView(endpoint: Endpoint, template: Template | null): AuditView {
  const { version, templateId } = endpoint
  const endpointFields = tableView(ENDPOINT_FIELDS, endpoint, { templateId, version })
  if (template === null) return endpointFields
  const { shown, hidden, variables } = templateView(template, 'template.')
  return {
    shown: { ...endpointFields.shown, ...shown },
    hidden: { ...endpointFields.hidden, ...hidden },
    variables: { ...endpointFields.variables, ...variables },
  }
}

/** A template as the audit log shows it. @param prefix beginning of the names of its fields */
export function templateView(template: Template, prefix = ''): AuditView {
  return tableView(TEMPLATE_FIELDS, template, { listed: template.listed }, prefix)
}

function tableView(table: FieldTable, values: object, beside: Fields, prefix = ''): AuditView {
  const valuesByName = new Map(Object.entries(values))
  const of = (audited: string) => Object.keys(table).filter(name => table[name]!.audited === audited)
  const named = (names: readonly string[]) => names.map(name => [`${prefix}${name}`, valuesByName.get(name)] as const)
  const besides = Object.entries(beside).map(([name, value]) => [`${prefix}${name}`, value] as const)
  return {
    shown: shownFields(Object.fromEntries([...named(of('value')), ...besides])),
    hidden: shownFields(Object.fromEntries(named(of('change')))),
    variables: Object.fromEntries(named(of('names'))),
  }
}

function view(shown: Fields, hidden: Fields = {}): AuditView {
  return { shown, hidden, variables: {} }
}

function shownFields(fields: object): Fields {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, plainValue(value)]))
}

/** A value in its JSON form. */
function plainValue(value: unknown): ShownValue {
  return value === undefined ? null : JSON.parse(JSON.stringify(value))
}
