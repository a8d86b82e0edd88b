/** The bytes of a certificate (RFC 5280), which Node can read but not write. */
import { createHash } from 'node:crypto'
import { isIP } from 'node:net'
import { AsnConvert, OctetString } from '@peculiar/asn1-schema'
import {
  AlgorithmIdentifier,
  AttributeTypeAndValue,
  AttributeValue,
  AuthorityKeyIdentifier,
  BasicConstraints,
  Certificate,
  ExtendedKeyUsage,
  Extension,
  Extensions,
  GeneralName,
  GeneralSubtree,
  GeneralSubtrees,
  id_ce_authorityKeyIdentifier,
  id_ce_basicConstraints,
  id_ce_extKeyUsage,
  id_ce_keyUsage,
  id_ce_nameConstraints,
  id_ce_subjectAltName,
  id_ce_subjectKeyIdentifier,
  id_kp_serverAuth,
  KeyIdentifier,
  KeyUsage,
  KeyUsageFlags,
  Name,
  NameConstraints,
  RelativeDistinguishedName,
  SubjectAlternativeName,
  SubjectKeyIdentifier,
  SubjectPublicKeyInfo,
  TBSCertificate,
  Validity,
  Version,
} from '@peculiar/asn1-x509'

/** Content of a certificate. */
export interface CertificateParts {
  /** DNS names and addresses; the first is its subject. */
  readonly names: readonly string[]
  /** In DER. */
  readonly publicKey: Uint8Array<ArrayBuffer>
  /** Random bytes. */
  readonly serial: Uint8Array
  readonly fromMs: number
  readonly untilMs: number
  /**
   * The certificate of the authority that signs it, in DER; null for one that is signed by its own key. `authority`
   * for an authority, which signs certificates for its names and for names below them alone.
   */
  readonly issuer: Uint8Array<ArrayBuffer> | 'authority' | null
  /** Signs with the private key of the issuer: ECDSA with SHA-256, in DER. */
  readonly sign: (bytes: Uint8Array) => Uint8Array
}

const ECDSA_WITH_SHA256 = '1.2.840.10045.4.3.2'
const COMMON_NAME = '2.5.4.3'
const ORGANIZATION = '2.5.4.10'
/** Limit of a common name (X.520). */
const MAX_COMMON_NAME = 64

/** The certificate in DER. One of a server can sign no other. */
export function certificateDer(parts: CertificateParts): Buffer {
  const algorithm = new AlgorithmIdentifier({ algorithm: ECDSA_WITH_SHA256 })
  const isAuthority = parts.issuer === 'authority'
  const subject = isAuthority
    ? distinguishedName(`Authority ${hex(parts.serial).slice(0, 8)}`, 'Runyard (local authority)')
    : distinguishedName(parts.names[0]!.slice(0, MAX_COMMON_NAME), 'Runyard (self-signed)')
  const issuer = parts.issuer instanceof Uint8Array ? AsnConvert.parse(parts.issuer, Certificate).tbsCertificate : null
  // Positive, and without a zero at its beginning.
  const serialNumber = Uint8Array.from(parts.serial, (byte, index) =>
    index === 0 ? (byte & 0x3f) | 0x40 : byte,
  ).buffer
  const tbsCertificate = new TBSCertificate({
    version: Version.v3,
    serialNumber,
    signature: algorithm,
    issuer: issuer?.subject ?? subject,
    subject,
    validity: new Validity({ notBefore: new Date(parts.fromMs), notAfter: new Date(parts.untilMs) }),
    subjectPublicKeyInfo: AsnConvert.parse(parts.publicKey, SubjectPublicKeyInfo),
    extensions: new Extensions(extensionsFor(parts, isAuthority, issuer)),
  })
  const signed = AsnConvert.serialize(tbsCertificate)
  const signatureValue = Uint8Array.from(parts.sign(new Uint8Array(signed))).buffer
  const certificate = new Certificate({ tbsCertificate, signatureAlgorithm: algorithm, signatureValue })
  return Buffer.from(AsnConvert.serialize(certificate))
}

function extensionsFor(
  { names, publicKey }: CertificateParts,
  isAuthority: boolean,
  issuer: TBSCertificate | null,
): Extension[] {
  const keyId = keyIdentifier(publicKey)
  const alternatives = names.map(name => generalName(name))
  const issuerKeyId =
    issuer === null ? keyId : keyIdentifier(new Uint8Array(AsnConvert.serialize(issuer.subjectPublicKeyInfo)))
  return [
    ...(isAuthority ? authorityExtensions(names) : SERVER_EXTENSIONS),
    extension(id_ce_subjectAltName, new SubjectAlternativeName(alternatives), false),
    // Clients find the right one among several with one subject by its key.
    extension(id_ce_subjectKeyIdentifier, new SubjectKeyIdentifier(keyId), false),
    extension(
      id_ce_authorityKeyIdentifier,
      new AuthorityKeyIdentifier({ keyIdentifier: new KeyIdentifier(issuerKeyId) }),
      false,
    ),
  ]
}

// No usage of the key: OpenSSL 1.1 requires one for signing in a certificate that is signed by its own key, which
// later versions refuse in one that is of no authority.
const SERVER_EXTENSIONS = [
  extension(id_ce_basicConstraints, new BasicConstraints({ cA: false }), true),
  extension(id_ce_extKeyUsage, new ExtendedKeyUsage([id_kp_serverAuth]), false),
]

function authorityExtensions(names: readonly string[]): Extension[] {
  const subtrees = names.map(name => {
    const length = isIP(name) === 4 ? '/32' : isIP(name) === 6 ? '/128' : ''
    return new GeneralSubtree({ base: generalName(`${name}${length}`, name) })
  })
  return [
    extension(id_ce_basicConstraints, new BasicConstraints({ cA: true, pathLenConstraint: 0 }), true),
    extension(id_ce_keyUsage, new KeyUsage(KeyUsageFlags.keyCertSign), true),
    extension(id_ce_nameConstraints, new NameConstraints({ permittedSubtrees: new GeneralSubtrees(subtrees) }), true),
  ]
}

function generalName(text: string, name = text): GeneralName {
  return new GeneralName(isIP(name) === 0 ? { dNSName: text } : { iPAddress: text })
}

function keyIdentifier(publicKey: Uint8Array<ArrayBuffer>): ArrayBuffer {
  return Uint8Array.from(createHash('sha256').update(publicKey).digest().subarray(0, 20)).buffer
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}

function extension(extnID: string, value: object, critical: boolean): Extension {
  return new Extension({ extnID, critical, extnValue: new OctetString(AsnConvert.serialize(value)) })
}

function distinguishedName(commonName: string, organization: string): Name {
  const attribute = (type: string, utf8String: string) =>
    new RelativeDistinguishedName([new AttributeTypeAndValue({ type, value: new AttributeValue({ utf8String }) })])
  return new Name([attribute(COMMON_NAME, commonName), attribute(ORGANIZATION, organization)])
}
