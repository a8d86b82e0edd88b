/**
 * A model server that does nothing: it reads the body of each request and sends a constant chat completion with its
 * usage. It listens on the port of `PORT`, or a free one that it prints.
 */
import { type AddressInfo, createServer } from 'node:net'

/** The name of its model. */
export const CHAT_MODEL = 'bench/model'

const usage = { prompt_tokens: 100, completion_tokens: 200, total_tokens: 300 }
const message = { role: 'assistant', content: 'hello '.repeat(150) }
const choices = [{ index: 0, message, finish_reason: 'stop' }]
const COMPLETION = responseText({ id: 'c-1', object: 'chat.completion', created: 1, model: CHAT_MODEL, choices, usage })
const LIST = responseText({ object: 'list', data: [{ id: CHAT_MODEL, object: 'model' }] })

function responseText(body: object): Buffer {
  const text = JSON.stringify(body)
  return Buffer.from(
    `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nServer: bench\r\nContent-Length: ${text.length}\r\n\r\n${text}`,
  )
}

if (import.meta.main) {
  const server = createServer({ noDelay: true }, socket => {
    let received = ''
    socket.on('error', () => {})
    socket.on('data', bytes => {
      received += bytes.toString('latin1')
      for (;;) {
        const end = received.indexOf('\r\n\r\n')
        if (end < 0) return
        const head = received.slice(0, end)
        const length = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0)
        if (received.length < end + 4 + length) return
        received = received.slice(end + 4 + length)
        socket.write(head.startsWith('GET') ? LIST : COMPLETION)
      }
    })
  })
  server.listen(Number(process.env.PORT ?? 0), '127.0.0.1', 4_096, () =>
    console.log((server.address() as AddressInfo).port),
  )
}
