/**
 * The fields of an endpoint that need one common control. A row has everything that the form needs of its field. A
 * typed value is a text, by the name of the member of the API.
 */
import { asText, asTexts, type Body, readNumber, splitWords } from './body.ts'

/** One field with a common control. */
interface SimpleField {
  /** Short name in the title of the folded fields. */
  readonly title: string
  readonly label: string
  readonly hint?: string
  readonly placeholder?: string
  /**
   * Seconds: milliseconds in the API. Choice: one of `options`. Flag: true or false. List: in one line. Lines: one
   * item on each line.
   */
  readonly kind: 'seconds' | 'choice' | 'flag' | 'text' | 'list' | 'lines'
  /** Value of a new endpoint that does not give the field. */
  readonly fallback: unknown
  /** True for a field that workers see, so that a change makes a release. */
  readonly isSeen: boolean
  /** Texts of a choice by value. */
  readonly options?: readonly (readonly [value: string, text: string])[]
  /** Least, most and step of a number. */
  readonly range?: readonly [number, number, (number | 'any')?]
  /** The only type of endpoints that has the field. */
  readonly only?: 'QUEUE' | 'LOAD_BALANCER'
}

/** The fields, in the order of the form. */
export const SIMPLE_FIELDS = {
  modelReferences: {
    title: 'models',
    label: 'Models of Hugging Face',
    hint: 'One on each line. They are downloaded before a worker starts.',
    placeholder: 'owner/name:revision',
    kind: 'lines',
    fallback: [],
    isSeen: true,
  },
  timeout: {
    title: 'timeout',
    label: 'Timeout of an attempt, seconds',
    kind: 'seconds',
    range: [5, 604_800, 'any'],
    fallback: 300_000,
    isSeen: false,
  },
  flashboot: {
    title: 'FlashBoot',
    label: 'FlashBoot',
    kind: 'choice',
    options: [
      ['OFF', 'Off: idle workers end'],
      ['FLASHBOOT', 'On: idle workers are frozen'],
      ['PRIORITY_FLASHBOOT', 'First: frozen before others'],
    ],
    fallback: 'OFF',
    isSeen: true,
  },
  priority: {
    title: 'priority',
    label: 'Priority beside other endpoints',
    kind: 'choice',
    options: [
      ['low', 'Low'],
      ['normal', 'Normal'],
      ['high', 'High: first where room is short'],
    ],
    fallback: 'normal',
    isSeen: false,
  },
  preemptible: {
    title: 'pauses',
    label: 'Its jobs may be paused',
    kind: 'flag',
    options: [
      ['false', 'No'],
      ['true', 'Yes: for endpoints of higher priority'],
    ],
    fallback: false,
    isSeen: false,
    only: 'QUEUE',
  },
  corsOrigins: {
    title: 'origins',
    label: 'Origins of web pages that may call it',
    hint: 'One on each line, or * for all',
    placeholder: 'https://app.example',
    kind: 'lines',
    fallback: [],
    isSeen: false,
  },
  domain: {
    title: 'domain',
    label: 'Own domain',
    hint: 'Its DNS name must resolve to this server',
    placeholder: 'chat.example.org',
    kind: 'text',
    fallback: null,
    isSeen: false,
    only: 'LOAD_BALANCER',
  },
  dataCenterIds: {
    title: 'data centers',
    label: 'Data centers',
    hint: 'Names for tools that expect them; all workers run here',
    kind: 'list',
    fallback: [],
    isSeen: true,
  },
} as const satisfies Readonly<Record<string, SimpleField>>

/** The name of a field in the table. */
export type SimpleName = keyof typeof SIMPLE_FIELDS

/** All names, in the order of the form. */
export const SIMPLE_NAMES = Object.keys(SIMPLE_FIELDS) as readonly SimpleName[]

/** A row of the table. */
export function simpleField(name: SimpleName): SimpleField {
  return SIMPLE_FIELDS[name]
}

/** The defaults of the API. */
export const SIMPLE_DEFAULTS: Body = Object.fromEntries(SIMPLE_NAMES.map(name => [name, simpleField(name).fallback]))

/** The typed texts of a configuration. */
export function simpleDraft(body: Body): Readonly<Record<SimpleName, string>> {
  const entries = SIMPLE_NAMES.map(name => [name, typedText(simpleField(name), body[name])])
  return Object.fromEntries(entries)
}

/** The members of the API for a draft. */
export function simpleBody(draft: Readonly<Record<SimpleName, string>> & { readonly type: string }): Body {
  const names = SIMPLE_NAMES.filter(name => [undefined, draft.type].includes(simpleField(name).only))
  return Object.fromEntries(names.map(name => [name, apiValue(simpleField(name), draft[name])]))
}

function typedText({ kind }: SimpleField, value: unknown): string {
  if (kind === 'seconds') return typeof value === 'number' ? String(value / 1_000) : asText(value)
  if (kind === 'list') return asTexts(value).join(', ')
  if (kind === 'flag') return String(value === true)
  return kind === 'lines' ? asTexts(value).join('\n') : asText(value)
}

function apiValue({ kind }: SimpleField, typed: string): unknown {
  if (kind === 'list' || kind === 'lines') return splitWords(typed)
  if (kind === 'text') return typed.trim() || null
  if (kind === 'choice') return typed
  if (kind === 'flag') return typed === 'true'
  const seconds = readNumber(typed)
  return typeof seconds === 'number' ? Math.round(seconds * 1_000) : seconds
}
