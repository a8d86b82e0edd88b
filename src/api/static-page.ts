/**
 * Pages that are the same for everybody: compressed once, and sent in small pieces so that slow clients hold
 * little memory.
 */

/** Bytes of a page sent at a time. */
const PIECE_BYTES = 32_768

/** A page, plain and compressed. */
export interface Forms {
  readonly plain: Uint8Array
  /** Null if it is not smaller. */
  readonly gzip: Uint8Array | null
}

/** A page that is rendered at the first request. */
export class StaticPage {
  readonly #render
  readonly #headers
  #forms: Promise<Forms> | null = null

  /** @param headers response headers, in addition to those about the encoding */
  constructor(render: () => string | Promise<string>, headers: Readonly<Record<string, string>>) {
    this.#render = render
    this.#headers = headers
  }

  /** The response in an encoding that the request accepts. */
  async answer(request: Request): Promise<Response> {
    this.#forms ??= this.#make()
    return formsResponse(request, await this.#forms, this.#headers)
  }

  async #make(): Promise<Forms> {
    const plain = new TextEncoder().encode(await this.#render())
    const compressed = new Blob([plain]).stream().pipeThrough(new CompressionStream('gzip'))
    return { plain, gzip: new Uint8Array(await new Response(compressed).arrayBuffer()) }
  }
}

/** A page in an encoding that the request accepts; without its content for HEAD. */
export function formsResponse(
  { method, headers: requested }: Request,
  { plain, gzip }: Forms,
  headers: Readonly<Record<string, string>>,
): Response {
  const compressed = gzip !== null && acceptsGzip(requested.get('accept-encoding') ?? '')
  const content = compressed ? gzip : plain
  return new Response(method === 'HEAD' ? null : pieceStream(content), {
    headers: {
      ...headers,
      'content-length': String(content.byteLength),
      vary: 'accept-encoding',
      ...(compressed ? { 'content-encoding': 'gzip' } : {}),
    },
  })
}

/** Reads each piece after the one before it is sent, so that a connection that is not read holds only a few. */
function pieceStream(content: Uint8Array): ReadableStream<Uint8Array> {
  let at = 0
  return new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const piece = content.subarray(at, at + PIECE_BYTES)
        at += piece.byteLength
        controller.enqueue(piece)
        if (at >= content.byteLength) controller.close()
      },
    },
    { highWaterMark: 0 },
  )
}

function acceptsGzip(accepted: string): boolean {
  const one = accepted.split(',').find(coding => /^\s*(?:gzip|x-gzip)\s*(?:;|$)/i.test(coding))
  return one !== undefined && !/;\s*q=0(?:\.0*)?\s*$/.test(one)
}
