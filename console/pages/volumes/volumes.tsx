import { Empty } from '../../parts/basic.tsx'

/** A page. */
export function Volumes() {
  return <Empty title="Volumes" />
}
