import { Empty } from '../../parts/basic.tsx'

/** A page. */
export function Keys() {
  return <Empty title="Keys" />
}
