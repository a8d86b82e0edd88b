/** The list of endpoints. */
import { Empty } from '../../parts/basic.tsx'

/** All endpoints of the account. */
export function Endpoints() {
  return <Empty title="Endpoints" />
}
