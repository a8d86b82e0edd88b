import { Empty } from '../../parts/basic.tsx'

/** A page. */
export function Registries() {
  return <Empty title="Registries" />
}
