import { Empty } from '../../parts/basic.tsx'

/** A page. */
export function Webhooks() {
  return <Empty title="Webhooks" />
}
