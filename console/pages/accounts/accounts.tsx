import { Empty } from '../../parts/basic.tsx'

/** A page. */
export function Accounts() {
  return <Empty title="Accounts" />
}
