import { Empty } from '../../parts/basic.tsx'

/** A page. */
export function Machine() {
  return <Empty title="Machine" />
}
