import { XML_DECLARATION, type XmlOut, xmlDocument } from '../../core/files/xml.ts'

const XML_TYPE = { 'content-type': 'application/xml' }

/** A response with a document. */
export function xmlResponse(document: XmlOut): Response {
  return new Response(xmlDocument(document), { status: 200, headers: XML_TYPE })
}

/** An instant in a document. */
export function xmlTime(ms: number): string {
  return new Date(ms).toISOString()
}

/** Time after which an operation that takes long begins its response, and between two blanks of it. */
const BLANK_MS = 10_000

/**
 * A response with the document of an operation that may take long: it begins after a while, with a blank now and then,
 * so that nobody on the way gives up. An error that comes later is a document, too, as of S3.
 * @param failed makes the document of an error
 * @param after waits
 */
export async function lateResponse(
  document: Promise<XmlOut>,
  failed: (error: unknown) => string,
  after: (ms: number, callback: () => void) => () => void,
): Promise<Response> {
  let stop = () => {}
  const late = new Promise<null>(resolve => {
    stop = after(BLANK_MS, () => resolve(null))
  })
  const early = await Promise.race([document, late]).finally(() => stop())
  if (early !== null) return xmlResponse(early)
  const encoder = new TextEncoder()
  let isGone = false
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      const blank = () => {
        controller.enqueue(encoder.encode('\n'))
        stop = after(BLANK_MS, blank)
      }
      controller.enqueue(encoder.encode(XML_DECLARATION))
      blank()
      const end = (text: string) => {
        stop()
        // A stream that was canceled takes nothing more, and an error here would end the server.
        if (isGone) return
        controller.enqueue(encoder.encode(text.slice(XML_DECLARATION.length)))
        controller.close()
      }
      document.then(
        made => end(xmlDocument(made)),
        error => end(failed(error)),
      )
    },
    cancel() {
      isGone = true
      stop()
    },
  })
  return new Response(body, { status: 200, headers: XML_TYPE })
}
