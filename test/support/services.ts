/** The use cases of a rig, made once more from its ports, for tests of what no surface offers. */
import type { FieldNames } from '../../src/core/field-names.ts'
import { Access } from '../../src/services/access.ts'
import { Accounts } from '../../src/services/accounts.ts'
import { Endpoints } from '../../src/services/endpoints.ts'
import { Fleet } from '../../src/services/fleet.ts'
import { Jobs } from '../../src/services/jobs.ts'
import { Keys } from '../../src/services/keys.ts'
import { Registries } from '../../src/services/registries.ts'
import { Releases } from '../../src/services/releases.ts'
import { Secrets } from '../../src/services/secrets.ts'
import { Templates } from '../../src/services/templates.ts'
import { UnsentResults } from '../../src/services/unsent-results.ts'
import { Volumes } from '../../src/services/volumes.ts'
import { Waiting } from '../../src/services/waiting.ts'
import type { Rig } from './rig.ts'

/** @param names what refusals call the fields */
export function servicesOf({ ports }: Rig, names?: FieldNames) {
  const access = new Access(ports, [])
  const jobs = new Jobs(ports, new Waiting(ports.clock, ports.notifier))
  const fleet = new Fleet(ports, jobs, new UnsentResults(ports, jobs), () => ({ workerUrl: '' }))
  return {
    access,
    accounts: new Accounts(ports),
    keys: new Keys(ports, access),
    endpoints: new Endpoints(ports, fleet, names),
    templates: new Templates(ports, names),
    registries: new Registries(ports),
    volumes: new Volumes(ports),
    releases: new Releases(ports),
    secrets: new Secrets(ports),
  }
}
