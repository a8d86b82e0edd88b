import type { Endpoint } from '../../../client/api-types.d.ts'
import { Empty } from '../../../parts/basic.tsx'

/** A tab of an endpoint. */
export function Metrics(_: { readonly endpoint: Endpoint }) {
  return <Empty title="Metrics" />
}
