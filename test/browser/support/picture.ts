/** Pictures of pages: how they are kept, and whether two show the same, for a person who looks from afar. */
import { crc32, deflateSync } from 'node:zlib'
import type { Page } from '../../wire/support/chromium.ts'

/** Difference of two pictures, by cells of 20 x 20 pixels, in steps of brightness from 0 to 255. */
export interface Difference {
  readonly mean: number
  readonly largest: number
  /** Cells that differ by more than {@link CLEAR}. */
  readonly changed: number
}

/** Another number or another word in a cell changes less. */
const CLEAR = 24
/** Limits of what is the same page. */
const MAX_MEAN = 2
const MAX_CHANGED = 60

/** True if the differences are those of numbers, times and ids. */
export function isSamePage({ mean, changed }: Difference): boolean {
  return mean <= MAX_MEAN && changed <= MAX_CHANGED
}

/** Compares two pictures of 1280 x 800 in a page that is empty. */
export function pictureDifference(blank: Page, one: Buffer, other: Buffer): Promise<Difference> {
  const given = { pictures: [one, other].map(png => `data:image/png;base64,${png.toString('base64')}`), clear: CLEAR }
  return blank.evaluate(async ({ pictures, clear }) => {
    const [width, height] = [64, 40]
    const readCells = async (url: string) => {
      const image = new Image()
      image.src = url
      await image.decode()
      const canvas = new OffscreenCanvas(width, height)
      const context = canvas.getContext('2d')!
      context.imageSmoothingQuality = 'high'
      context.drawImage(image, 0, 0, width, height)
      return context.getImageData(0, 0, width, height).data
    }
    const [first, second] = [await readCells(pictures[0]!), await readCells(pictures[1]!)]
    const cells = Array.from({ length: width * height }, (_, cell) => {
      const colours = [0, 1, 2].map(colour => Math.abs(first[cell * 4 + colour]! - second[cell * 4 + colour]!))
      return colours.reduce((sum, value) => sum + value, 0) / 3
    })
    return {
      mean: cells.reduce((sum, value) => sum + value, 0) / cells.length,
      largest: Math.max(...cells),
      changed: cells.filter(value => value > clear).length,
    }
  }, given)
}

/** Colours closer than this are one, so that rare ones, such as those of a sign, are kept. */
const NEAR = 50
/** Colours of a picture as it is kept. */
const MAX_COLOURS = 256
/** Signature of PNG files (https://www.w3.org/TR/png-3/#5PNG-file-signature). */
const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])

/** A picture with 256 colours, in a third of the bytes: git keeps each version of it. */
export async function compacted(blank: Page, png: Buffer): Promise<Buffer> {
  const { width, height, base64 } = await readPixels(blank, png)
  const pixels = Buffer.from(base64, 'base64')
  const colourAt = (at: number) => pixels.readUInt32BE(at * 4) >>> 8
  const uses = new Map<number, number>()
  for (let at = 0; at < width * height; at++) uses.set(colourAt(at), (uses.get(colourAt(at)) ?? 0) + 1)
  const colours = [...uses].sort((a, b) => b[1] - a[1]).map(([colour]) => colour)
  const palette: number[] = []
  for (const colour of colours)
    if (palette.length < MAX_COLOURS && palette.every(one => distance(one, colour) >= NEAR)) palette.push(colour)
  const indexes = new Map(colours.map(colour => [colour, nearest(palette, colour)]))
  const rows = Buffer.alloc((width + 1) * height)
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) rows[y * (width + 1) + 1 + x] = indexes.get(colourAt(y * width + x))!
  const head = Buffer.alloc(13)
  head.writeUInt32BE(width, 0)
  head.writeUInt32BE(height, 4)
  // Eight bits, which are places in the palette.
  head.set([8, 3, 0, 0, 0], 8)
  const table = Buffer.from(palette.flatMap(colorParts))
  const parts = [chunk('IHDR', head), chunk('PLTE', table), chunk('IDAT', deflateSync(rows, { level: 9 }))]
  return Buffer.concat([SIGNATURE, ...parts, chunk('IEND', Buffer.alloc(0))])
}

function readPixels(blank: Page, png: Buffer): Promise<{ width: number; height: number; base64: string }> {
  return blank.evaluate(
    async url => {
      const image = new Image()
      image.src = url
      await image.decode()
      const { width, height } = image
      const context = new OffscreenCanvas(width, height).getContext('2d')!
      context.drawImage(image, 0, 0)
      const { data } = context.getImageData(0, 0, width, height)
      return { width, height, base64: new Uint8Array(data.buffer).toBase64() }
    },
    `data:image/png;base64,${png.toString('base64')}`,
  )
}

function nearest(palette: readonly number[], colour: number): number {
  const distances = palette.map(one => distance(one, colour))
  return distances.indexOf(Math.min(...distances))
}

/** The square of the distance of two colours. */
function distance(one: number, other: number): number {
  const parts = colorParts(other)
  return colorParts(one).reduce((sum, part, at) => sum + (part - parts[at]!) ** 2, 0)
}

function colorParts(colour: number): [red: number, green: number, blue: number] {
  return [colour >>> 16, (colour >>> 8) & 255, colour & 255]
}

function chunk(name: string, data: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(name, 'latin1'), data])
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(data.length)
  sum.writeUInt32BE(crc32(named))
  return Buffer.concat([length, named, sum])
}
