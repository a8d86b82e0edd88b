import { Empty } from '../../parts/basic.tsx'

/** A page. */
export function Secrets() {
  return <Empty title="Secrets" />
}
