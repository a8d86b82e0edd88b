/** Where each sealed text belongs; store/sql/seals.ts finds the same rows. */

/** The value of a secret. */
export function secretPlace(owner: string, name: string) {
  return { kind: 'secrets', row: `${owner}/${name}` }
}

/** The key that signs the webhooks of an endpoint. */
export function webhookKeyPlace(endpointId: string) {
  return { kind: 'webhookKeys', row: endpointId }
}

/** The password of a registry. */
export function registryPlace(owner: string, id: string) {
  return { kind: 'registries', row: `${owner}/${id}` }
}

/** The key of an endpoint. */
export function endpointKeyPlace(endpointId: string) {
  return { kind: 'endpointKeys', row: endpointId }
}

/** The `s3Config` of a job. */
export function jobPlace(id: string) {
  return { kind: 'jobs', row: id }
}
