import { Empty } from '../../parts/basic.tsx'

/** What needs attention first. */
export function Home() {
  return <Empty title="Home" />
}
