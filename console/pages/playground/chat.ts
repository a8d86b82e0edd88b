/** A chat: its turns, the request that sends them, and the same request as programs. */
import { quoted } from '../endpoint/requests/run-call.ts'

/** A message of a chat. */
export interface Turn {
  readonly role: 'user' | 'assistant'
  readonly text: string
  /** Thoughts of a model that sends them apart. */
  readonly reasoning: string
  /** Addresses with the images in them. */
  readonly images: readonly string[]
  /** Times and counts of an answer, for people; empty without any. */
  readonly note: string
  /** Reason why the answer is not whole; null if it is. */
  readonly problem: string | null
  /** Path of the page of the job that answered; null without one. */
  readonly job: string | null
}

/** A turn without anything but its text. */
export function newTurn(role: Turn['role'], text = '', images: readonly string[] = []): Turn {
  return { role, text, images, reasoning: '', note: '', problem: null, job: null }
}

/** Settings of a chat. Empty texts are left out of the request. */
export interface ChatSettings {
  readonly model: string
  readonly system: string
  readonly temperature: string
  readonly maxTokens: string
  readonly isStreamed: boolean
}

/** Settings of the first visit. */
export const FIRST_SETTINGS: ChatSettings = { model: '', system: '', temperature: '', maxTokens: '', isStreamed: true }

type Content = string | readonly object[]

/** The body of a request. Numbers that are none are sent as they were typed: the worker says what is wrong. */
export function chatBody(settings: ChatSettings, turns: readonly Turn[]): Record<string, unknown> {
  const { model, system, temperature, maxTokens, isStreamed } = settings
  const spoken = turns.filter(({ text, images }) => text !== '' || images.length > 0)
  const messages: { role: string; content: Content }[] = spoken.map(turn => ({
    role: turn.role,
    content: contentOf(turn),
  }))
  if (system.trim() !== '') messages.unshift({ role: 'system', content: system })
  return {
    model,
    messages,
    ...(temperature.trim() === '' ? {} : { temperature: numberOf(temperature) }),
    ...(maxTokens.trim() === '' ? {} : { max_tokens: numberOf(maxTokens) }),
    ...(isStreamed ? { stream: true } : {}),
  }
}

function contentOf({ text, images }: Turn): Content {
  if (images.length === 0) return text
  const pictures = images.map(url => ({ type: 'image_url', image_url: { url } }))
  return text === '' ? pictures : [{ type: 'text', text }, ...pictures]
}

function numberOf(text: string): number | string {
  const number = Number(text)
  return Number.isFinite(number) ? number : text
}

/** An addition to the turn of an answer. */
export interface Added {
  readonly text: string
  readonly reasoning: string
  /** Tokens of the answer; null if it does not say. */
  readonly tokens: number | null
  readonly problem: string | null
}

/** The addition of an event of a stream, or of a whole answer. A text that is no JSON is the answer itself. */
export function readAdded(data: string): Added {
  let value: unknown
  try {
    value = JSON.parse(data)
  } catch {
    return { text: data, reasoning: '', tokens: null, problem: null }
  }
  const { choices, usage, error } = (value ?? {}) as ChatAnswer
  const first = Array.isArray(choices) ? choices[0] : undefined
  const part = first?.delta ?? first?.message ?? {}
  const tokens = usage?.completion_tokens
  return {
    text: contentText(part.content) || textOf(first?.text),
    reasoning: textOf(part.reasoning_content) || textOf(part.reasoning),
    tokens: typeof tokens === 'number' ? tokens : null,
    problem: error === undefined || error === null ? null : errorText(error),
  }
}

interface ChatAnswer {
  readonly choices?: readonly {
    readonly delta?: ChatPart
    readonly message?: ChatPart
    readonly text?: unknown
  }[]
  readonly usage?: { readonly completion_tokens?: unknown } | null
  readonly error?: unknown
}

interface ChatPart {
  readonly content?: unknown
  readonly reasoning_content?: unknown
  readonly reasoning?: unknown
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** The text of a content, which may be a list of parts. */
function contentText(content: unknown): string {
  if (!Array.isArray(content)) return textOf(content)
  return content.map(part => textOf((part as { readonly text?: unknown } | null)?.text)).join('')
}

function errorText(error: unknown): string {
  const { message } = (typeof error === 'object' ? error : {}) as { readonly message?: unknown }
  return textOf(error) || textOf(message) || JSON.stringify(error)
}

/** Number of characters from which an image is left out of a program. */
const LONG_IMAGE = 400

/** The body for a program: without the bytes of images, which no command line takes. */
export function shortBody(body: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const text = JSON.stringify(body, (_, value: unknown) =>
    typeof value === 'string' && value.length > LONG_IMAGE && value.startsWith('data:image/')
      ? `${value.slice(0, value.indexOf(',') + 1)}...`
      : value,
  )
  return JSON.parse(text) as Record<string, unknown>
}

/** Language of a program. */
export type Language = 'curl' | 'python' | 'javascript'

/** The request as a program. @param base base URL for OpenAI clients */
export function chatProgram(language: Language, base: string, body: Readonly<Record<string, unknown>>): string {
  const { stream, ...rest } = shortBody(body)
  if (language === 'curl') {
    const flags = stream === true ? '-sSN' : '-sS'
    return [
      `curl ${flags} ${quoted(`${base}/chat/completions`)}`,
      '-H "Authorization: Bearer $RUNYARD_API_KEY"',
      "-H 'Content-Type: application/json'",
      `-d ${quoted(JSON.stringify(shortBody(body)))}`,
    ].join(' \\\n  ')
  }
  return language === 'python' ? pythonProgram(base, rest, stream === true) : scriptProgram(base, rest, stream === true)
}

/** JSON of texts, numbers, lists and objects is Python, too. */
function pythonProgram(base: string, body: Readonly<Record<string, unknown>>, isStreamed: boolean): string {
  const members = Object.entries(body).map(([name, value]) => `    ${name}=${indented(value)},`)
  return [
    'import os',
    'import openai',
    '',
    `client = openai.OpenAI(base_url=${JSON.stringify(base)}, api_key=os.environ["RUNYARD_API_KEY"])`,
    'answer = client.chat.completions.create(',
    ...members,
    ...(isStreamed ? ['    stream=True,'] : []),
    ')',
    ...(isStreamed
      ? [
          'for event in answer:',
          '    if event.choices:',
          '        print(event.choices[0].delta.content or "", end="", flush=True)',
        ]
      : ['print(answer.choices[0].message.content)']),
  ].join('\n')
}

function scriptProgram(base: string, body: Readonly<Record<string, unknown>>, isStreamed: boolean): string {
  const members = Object.entries(body).map(([name, value]) => `  ${name}: ${indented(value, 2)},`)
  return [
    "import OpenAI from 'openai'",
    '',
    `const client = new OpenAI({ baseURL: ${JSON.stringify(base)}, apiKey: process.env.RUNYARD_API_KEY })`,
    'const answer = await client.chat.completions.create({',
    ...members,
    ...(isStreamed ? ['  stream: true,'] : []),
    '})',
    isStreamed
      ? "for await (const event of answer) process.stdout.write(event.choices[0]?.delta.content ?? '')"
      : 'console.log(answer.choices[0].message.content)',
  ].join('\n')
}

function indented(value: unknown, spaces = 4): string {
  return JSON.stringify(value, null, 2).replaceAll('\n', `\n${' '.repeat(spaces)}`)
}
