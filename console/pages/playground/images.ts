/** Images that a person adds to a message. */

/** Types that models read. */
const TYPES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp'])
/** The types for the dialog of the browser. */
export const ACCEPTED = [...TYPES].join(',')
/** Limit of bytes of all images of a chat: a request has 20 MB, and base64 is a third longer. */
export const MAX_IMAGE_BYTES = 14_000_000

/** Reason why an image is not taken; null if it is. @param usedBytes bytes of the other images */
export function imageProblem(
  { type, size, name }: Pick<File, 'type' | 'size' | 'name'>,
  usedBytes: number,
): string | null {
  if (!TYPES.has(type)) return `${name || 'This'} is no PNG, JPEG, GIF or WebP image.`
  return usedBytes + size > MAX_IMAGE_BYTES ? 'The images of a chat may have 14 MB together.' : null
}

/** Bytes of an image in an address. */
export function imageBytes(address: string): number {
  return Math.floor(((address.length - address.indexOf(',') - 1) * 3) / 4)
}

/** The image as an address. */
export function readImage(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () => resolve(String(reader.result))
    reader.onerror = () => reject(new Error(`${file.name} could not be read.`))
    reader.readAsDataURL(file)
  })
}
