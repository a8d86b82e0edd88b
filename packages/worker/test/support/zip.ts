/** Creates zip files, also malformed ones that no packer creates. */
import { crc32, deflateRawSync } from 'node:zlib'

export type Member = {
  name: string
  data?: string | Buffer
  /** Kind and permissions of Unix. */
  mode?: number
  /** False values in the archive, in place of the real ones. */
  says?: { bytes?: number; crc32?: number; flags?: number }
}

/** One archive with these files; a name with a slash at its end is a folder. */
export function makeZip(...members: Member[]): Buffer {
  const locals: Buffer[] = []
  const central: Buffer[] = []
  let offset = 0
  for (const { name, data = '', mode = 0o100644, says = {} } of members) {
    const plain = Buffer.from(data)
    const packed = deflateRawSync(plain)
    const fileName = Buffer.from(name)
    // From the version to the length of the extra field, which both headers have.
    const common = Buffer.alloc(26)
    common.writeUInt16LE(20, 0)
    common.writeUInt16LE(0x800 | (says.flags ?? 0), 2)
    common.writeUInt16LE(8, 4)
    common.writeUInt32LE(says.crc32 ?? crc32(plain), 10)
    common.writeUInt32LE(packed.length, 14)
    common.writeUInt32LE(says.bytes ?? plain.length, 18)
    common.writeUInt16LE(fileName.length, 22)
    const local = Buffer.concat([Buffer.from('PK\x03\x04'), common, fileName, packed])
    const rest = Buffer.alloc(14)
    rest.writeUInt32LE((mode << 16) >>> 0, 6)
    rest.writeUInt32LE(offset, 10)
    // Version 2.0 on Unix created it.
    central.push(Buffer.concat([Buffer.from('PK\x01\x02'), Buffer.from([20, 3]), common, rest, fileName]))
    locals.push(local)
    offset += local.length
  }
  const directory = Buffer.concat(central)
  const end = Buffer.alloc(18)
  end.writeUInt16LE(members.length, 4)
  end.writeUInt16LE(members.length, 6)
  end.writeUInt32LE(directory.length, 8)
  end.writeUInt32LE(offset, 12)
  return Buffer.concat([...locals, directory, Buffer.from('PK\x05\x06'), end])
}
