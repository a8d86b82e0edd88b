/** Chats with any model that the key may call. Nothing of a chat is stored; all of it goes to this server alone. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { useResource } from '../../client/resource.ts'
import { mayUseJobs, who } from '../../client/session.ts'
import { announce } from '../../parts/announce.tsx'
import { Button, Choice, Code, Copy, Empty, Loaded, PageHead, Section } from '../../parts/basic.tsx'
import { CheckField, Field, SelectField, TextField } from '../../parts/form.tsx'
import { MarkdownView } from '../../parts/output/markdown-view.tsx'
import { query, setQuery } from '../../router.ts'
import { askModel } from './answer.ts'
import { type ChatSettings, chatBody, chatProgram, FIRST_SETTINGS, type Language, newTurn, type Turn } from './chat.ts'
import { ACCEPTED, imageBytes, imageProblem, readImage } from './images.ts'
import { type Model, readModels, stateWords } from './models.ts'

/** The page. `?model=` is the chosen model. */
export function Playground() {
  const models = useResource('models', readModels, { on: event => event.type.startsWith('endpoint.'), everyMs: 15_000 })
  return (
    <>
      <PageHead title="Playground" />
      <Loaded of={models}>
        {all => {
          const callable = all.filter(({ endpointId }) => mayUseJobs('write', endpointId))
          return callable.length === 0 ? <NoModel /> : <Chat models={callable} onAnswer={models.reload} />
        }}
      </Loaded>
    </>
  )
}

function NoModel() {
  return (
    <div class="card">
      <Empty title="No model that your key may call">
        <p>
          Each endpoint is a model here, by its name. Its worker has to answer chats in OpenAI's form, as vLLM and
          llama.cpp do.
        </p>
      </Empty>
    </div>
  )
}

function Chat({
  models,
  onAnswer,
}: {
  readonly models: readonly Model[]
  /** Called after each answer: a model that answered is ready. */
  readonly onAnswer: () => void
}) {
  const [settings, setSettings] = useState(FIRST_SETTINGS)
  const chat = useChat()
  // The list may change its order while somebody writes.
  const first = useRef(models[0]!.name)
  const asked = query.value.get('model') ?? first.current
  const model = models.find(({ name }) => name === asked) ?? models[0]!
  const chosen = { ...settings, model: model.name }
  const body = chatBody(chosen, chat.turns)
  return (
    <div class="playground">
      <Section
        title="Chat"
        actions={
          chat.turns.length === 0 ? undefined : (
            <Button kind="quiet" onPress={chat.clear}>
              New chat
            </Button>
          )
        }
      >
        <Turns turns={chat.turns} model={model} isBusy={chat.isBusy} />
        <Composer
          isBusy={chat.isBusy}
          usedBytes={chat.turns.flatMap(({ images }) => images).reduce((sum, one) => sum + imageBytes(one), 0)}
          onSend={turn => chat.send(chosen, model, turn).then(onAnswer)}
          onStop={chat.stop}
        />
        <Programs body={body} />
      </Section>
      <Section title="Settings">
        <Settings settings={chosen} models={models} model={model} onChange={setSettings} />
      </Section>
    </div>
  )
}

/** The turns of a chat, and the answer in progress. */
function useChat() {
  const [turns, setTurns] = useState<readonly Turn[]>([])
  const [isBusy, setBusy] = useState(false)
  const end = useRef<AbortController | null>(null)
  useEffect(() => () => end.current?.abort(), [])
  return {
    turns,
    isBusy,
    stop: () => end.current?.abort(),
    clear: () => {
      end.current?.abort()
      end.current = null
      setTurns([])
      setBusy(false)
    },
    send: async (settings: ChatSettings, { endpointId }: Model, turn: Turn) => {
      const control = new AbortController()
      end.current = control
      const said = [...turns, turn]
      const show = (answer: Turn) => end.current === control && setTurns([...said, answer])
      setTurns([...said, newTurn('assistant')])
      setBusy(true)
      await askModel({ body: chatBody(settings, said), endpointId }, show, control.signal)
      if (end.current === control) setBusy(false)
    },
  }
}

function Turns({
  turns,
  model,
  isBusy,
}: {
  readonly turns: readonly Turn[]
  readonly model: Model
  readonly isBusy: boolean
}) {
  const list = useRef<HTMLDivElement>(null)
  const last = turns.at(-1)
  useEffect(() => {
    const { current } = list
    if (current !== null) current.scrollTop = current.scrollHeight
  }, [turns.length, last?.text.length, last?.reasoning.length])
  if (turns.length === 0) return <p class="turns faint">Write to {model.name}. The chat stays in this page.</p>
  return (
    <div class="turns" ref={list} tabIndex={0} role="log" aria-label="Chat" aria-busy={isBusy}>
      {turns.map((turn, at) => (
        <TurnView key={at} turn={turn} model={model} isBusy={isBusy && at === turns.length - 1} />
      ))}
    </div>
  )
}

function TurnView({ turn, model, isBusy }: { readonly turn: Turn; readonly model: Model; readonly isBusy: boolean }) {
  const { role, text, reasoning, images, note, problem, job } = turn
  const isWaiting = isBusy && text === '' && reasoning === ''
  return (
    <div class={`turn ${role}`} role="group" aria-label={role === 'user' ? 'You' : 'The model'}>
      {images.map((address, at) => (
        <img key={at} src={address} alt={`${at + 1} of ${images.length} that you sent`} />
      ))}
      {reasoning === '' ? null : (
        <details open={text === ''}>
          <summary>Thoughts</summary>
          <div class="faint plain">{reasoning}</div>
        </details>
      )}
      {role === 'assistant' ? <MarkdownView text={text} /> : <div class="plain">{text}</div>}
      {isWaiting ? (
        <p class="faint">
          Waits for {model.name}: {stateWords(model)}…
        </p>
      ) : null}
      {problem === null ? null : <p class={problem === 'Stopped.' ? 'faint' : 'bad-text'}>{problem}</p>}
      {role === 'user' || isBusy ? null : (
        <div class="turn-note faint">
          <span>{note}</span>
          {job === null ? null : <a href={job}>Job</a>}
          {text === '' ? null : <Copy text={text} what="answer" />}
        </div>
      )}
    </div>
  )
}

function Composer({
  isBusy,
  usedBytes,
  onSend,
  onStop,
}: {
  readonly isBusy: boolean
  readonly usedBytes: number
  readonly onSend: (turn: Turn) => void
  readonly onStop: () => void
}) {
  const [text, setText] = useState('')
  const [images, setImages] = useState<readonly string[]>([])
  const picker = useRef<HTMLInputElement>(null)
  const isEmpty = text.trim() === '' && images.length === 0
  const send = () => {
    if (isEmpty || isBusy) return
    onSend(newTurn('user', text, images))
    setText('')
    setImages([])
  }
  const add = async (files: readonly File[]) => {
    let bytes = usedBytes + images.reduce((sum, one) => sum + imageBytes(one), 0)
    const added: string[] = []
    for (const file of files) {
      const problem = imageProblem(file, bytes)
      if (problem !== null) {
        announce(problem, 'problem')
        break
      }
      bytes += file.size
      added.push(await readImage(file))
    }
    setImages(before => [...before, ...added])
  }
  const keys = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
    event.preventDefault()
    send()
  }
  const paste = (event: ClipboardEvent) => {
    const files = [...(event.clipboardData?.files ?? [])]
    if (files.length > 0) void add(files)
  }
  return (
    <div class="composer">
      <Field label="Message">
        {attributes => (
          <textarea
            {...attributes}
            rows={3}
            value={text}
            onInput={event => setText(event.currentTarget.value)}
            onKeyDown={keys}
            onPaste={paste}
          />
        )}
      </Field>
      {images.length === 0 ? null : (
        <div class="tools">
          {images.map((address, at) => (
            <Button
              key={at}
              onPress={() => setImages(images.filter((_, other) => other !== at))}
              aria-label={`Remove image ${at + 1}`}
            >
              <img src={address} alt="" /> ✕
            </Button>
          ))}
        </div>
      )}
      <div class="tools">
        {isBusy ? (
          <Button kind="main" onPress={onStop}>
            Stop
          </Button>
        ) : (
          <Button kind="main" onPress={send} disabled={isEmpty}>
            Send
          </Button>
        )}
        <Button onPress={() => picker.current?.click()}>Add images…</Button>
        <input
          ref={picker}
          type="file"
          hidden
          accept={ACCEPTED}
          multiple
          aria-label="Images"
          onChange={event => {
            const files = [...(event.currentTarget.files ?? [])]
            event.currentTarget.value = ''
            void add(files).catch((error: Error) => announce(error.message, 'problem'))
          }}
        />
        <span class="hint wide-only">
          <kbd>Enter</kbd> sends, <kbd>Shift</kbd> <kbd>Enter</kbd> is a new line
        </span>
      </div>
    </div>
  )
}

function Settings({
  settings,
  models,
  model,
  onChange,
}: {
  readonly settings: ChatSettings
  readonly models: readonly Model[]
  readonly model: Model
  readonly onChange: (settings: ChatSettings) => void
}) {
  const change = (part: Partial<ChatSettings>) => onChange({ ...settings, ...part })
  return (
    <>
      <SelectField
        label="Model"
        value={model.name}
        options={models.map(({ name }) => [name, name] as const)}
        onChange={name => setQuery({ model: name })}
        hint={
          <>
            {stateWords(model)} · <a href={`/endpoints/${model.endpointId}`}>endpoint</a>
          </>
        }
      />
      <Field label="System prompt">
        {attributes => (
          <textarea
            {...attributes}
            rows={3}
            value={settings.system}
            onInput={event => change({ system: event.currentTarget.value })}
          />
        )}
      </Field>
      <div class="two">
        <TextField
          label="Temperature"
          type="number"
          placeholder="of the model"
          value={settings.temperature}
          onChange={temperature => change({ temperature })}
        />
        <TextField
          label="Max tokens"
          type="number"
          placeholder="of the model"
          value={settings.maxTokens}
          onChange={maxTokens => change({ maxTokens })}
        />
      </div>
      <CheckField label="Stream" value={settings.isStreamed} onChange={isStreamed => change({ isStreamed })} />
    </>
  )
}

const LANGUAGES: readonly (readonly [Language, string])[] = [
  ['curl', 'curl'],
  ['python', 'Python'],
  ['javascript', 'JavaScript'],
]

/** The chat so far as a program. */
function Programs({ body }: { readonly body: Readonly<Record<string, unknown>> }) {
  const [language, setLanguage] = useState<Language>('curl')
  const base = `${who.value!.server.url}/openai/v1`
  return (
    <details>
      <summary>This chat as a program</summary>
      <div class="tools below">
        <Choice label="Language" value={language} options={LANGUAGES} onChange={setLanguage} />
      </div>
      <Code text={chatProgram(language, base, body)} what="program" />
      <p class="hint">The key comes from RUNYARD_API_KEY. The bytes of images are left out.</p>
    </details>
  )
}
