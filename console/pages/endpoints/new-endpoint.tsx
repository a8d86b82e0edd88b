import { Empty } from '../../parts/basic.tsx'

/** Makes an endpoint. */
export function NewEndpoint() {
  return <Empty title="NewEndpoint" />
}
