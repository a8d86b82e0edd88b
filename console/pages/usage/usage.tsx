import { Empty } from '../../parts/basic.tsx'

/** A page. */
export function Usage() {
  return <Empty title="Usage" />
}
