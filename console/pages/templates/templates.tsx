import { Empty } from '../../parts/basic.tsx'

/** A page. */
export function Templates() {
  return <Empty title="Templates" />
}
