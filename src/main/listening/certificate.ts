/** The certificate with which a run of the server speaks HTTPS. */
import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import { givenConsoleUrl, hasTls } from '../../config/addresses.ts'
import type { Config } from '../../config/config.ts'
import { CertificateInUse } from '../../system/certificates/certificate-in-use.ts'
import { readPair } from '../../system/certificates/key-pair.ts'
import { ensureSelfSigned } from '../../system/certificates/self-signed.ts'
import { writeTrustBundle } from '../../system/certificates/trust-bundle.ts'
import { systemClock } from '../../system/clock.ts'
import { machineNames } from '../../system/hardware/machine-names.ts'
import type { NamingSettings } from './addresses.ts'

/** The names of this machine that its user has not given. */
interface MachineNames {
  readonly names: readonly string[]
  /** Addresses at which others reach it. */
  readonly addresses: readonly string[]
}

/**
 * The certificate of the settings; null where the server speaks plain HTTP.
 * @throws AppError with a sentence when it cannot be used
 */
export async function openCertificate(config: Config): Promise<CertificateInUse | null> {
  const { tls, dataDir } = config
  const { certFile, keyFile } = tls
  if (!hasTls(tls)) return null
  if (certFile !== null && keyFile !== null)
    return await CertificateInUse.open(() => readPair({ certFile, keyFile }, Date.now()))
  // By the server's time: a clock that is a year ahead would make one that is not valid yet. Its names are those of
  // the start: with each network that comes and goes, clients would have to trust another certificate.
  const names = selfSignedNames(config, namesHere())
  const certificate = await CertificateInUse.open(() => ensureSelfSigned(dataDir, names, systemClock.now()))
  writeTrustBundle(dataDir)
  return certificate
}

/** The names of a certificate that the server makes for itself. */
export function selfSignedNames(
  settings: NamingSettings & Pick<Config, 'advertiseHost'>,
  machine: MachineNames,
): string[] {
  const { host, adminHost, publicUrl, queueUrl, lbDomain, allowedHosts, advertiseHost } = settings
  const urls = [publicUrl, queueUrl, givenConsoleUrl(settings)].filter(url => url !== null)
  const listensAt = [host, adminHost]
  const isForAll = listensAt.some(address => address === '0.0.0.0' || address === '::')
  const names = [
    // Many clients take no `*` right before a name without a dot, so the console is named.
    ...['localhost', '*.localhost', 'console.localhost', '*.lb.localhost', '127.0.0.1', '::1'],
    ...listensAt.filter(address => address !== '0.0.0.0' && address !== '::'),
    ...urls.map(url => new URL(url).hostname.replace(/^\[|\]$/g, '')),
    ...(lbDomain === null ? [] : [lbDomain, `*.${lbDomain}`]),
    ...allowedHosts,
    ...(advertiseHost === null ? [] : [advertiseHost]),
    ...machine.names,
    ...(isForAll ? machine.addresses : []),
  ]
  return [...new Set(names.map(name => name.toLowerCase().replace(/\.$/, '')).filter(isName))]
}

/** True for a name that a certificate can have. */
function isName(text: string): boolean {
  return isIP(text) !== 0 || /^(?:\*\.)?[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?$/.test(text)
}

/** Networks of containers and of virtual machines, at which no other machine reaches this one. */
const INNER = /^(?:docker|br-|veth|virbr|podman|cni|flannel|cali|ry-)/

function namesHere(): MachineNames {
  const outer = Object.entries(networkInterfaces()).filter(([name]) => !INNER.test(name))
  const outerAddresses = outer.flatMap(([, addresses]) => addresses ?? [])
  const addresses = outerAddresses.filter(({ internal, scopeid }) => !internal && (scopeid ?? 0) === 0)
  return { names: machineNames(), addresses: addresses.map(({ address }) => address) }
}
