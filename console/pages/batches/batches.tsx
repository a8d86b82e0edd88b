import { Empty } from '../../parts/basic.tsx'

/** A page. */
export function Batches() {
  return <Empty title="Batches" />
}
