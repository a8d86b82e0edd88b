/** Colors of terminals (ECMA-48, SGR): read into ranges with classes, since the page has no inline styles. */

/** A stretch of a text with the classes that show it. */
export interface Style {
  readonly from: number
  readonly to: number
  readonly classes: string
}

/** A text without its control sequences. */
export interface PlainText {
  readonly text: string
  /** In order, without overlaps; null for a text without colors. */
  readonly styles: readonly Style[] | null
}

const character = String.fromCharCode
const ESC = character(27)
const BELL = character(7)
/** All control characters but tabs and line ends. */
const CONTROL = `[${character(0)}-${character(8)}${character(11)}-${character(31)}${character(127)}-${character(159)}]`
/** SGR is the first form; then other CSI sequences, OSC with its end, other escapes, and the remaining controls. */
const CONTROLS = new RegExp(
  [
    `${ESC}\\[([\\d;:]*)m`,
    `${ESC}\\[[0-?]*[ -/]*[@-~]`,
    `${ESC}\\][^${BELL}${ESC}]*(?:${BELL}|${ESC}\\\\)?`,
    `${ESC}[ -/]*[0-~]?`,
    CONTROL,
  ].join('|'),
  'g',
)
const HAS_CONTROLS = new RegExp(CONTROL)

/** Reads the control sequences of a line. */
export function readAnsi(line: string): PlainText {
  if (!HAS_CONTROLS.test(line)) return { text: line, styles: null }
  const look = new Map<string, string>()
  const styles: Style[] = []
  let text = ''
  let end = 0
  const add = (until: number) => {
    const from = text.length
    text += line.slice(end, until)
    if (look.size > 0 && text.length > from)
      styles.push({ from, to: text.length, classes: [...look.values()].join(' ') })
  }
  for (const sequence of line.matchAll(CONTROLS)) {
    add(sequence.index)
    end = sequence.index + sequence[0].length
    if (sequence[1] !== undefined) change(look, sequence[1].split(/[;:]/).map(Number))
  }
  add(line.length)
  return { text, styles: styles.length === 0 ? null : styles }
}

const SET: Readonly<Record<number, string>> = { 1: 'bold', 2: 'dim', 3: 'italic', 4: 'underline' }
const UNSET: Readonly<Record<number, readonly string[]>> = { 22: ['bold', 'dim'], 23: ['italic'], 24: ['underline'] }

/** Applies the parameters of a sequence to the look. Bright colors are shown as normal ones: a theme has eight. */
function change(look: Map<string, string>, codes: readonly number[]): void {
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at]!
    const set = SET[code]
    if (code === 0) look.clear()
    else if (set !== undefined) look.set(set, `ansi-${set}`)
    for (const name of UNSET[code] ?? []) look.delete(name)
    const [tens, digit] = [Math.floor(code / 10), code % 10]
    const isFront = tens === 3 || tens === 9
    if (!isFront && tens !== 4 && tens !== 10) continue
    const place = isFront ? 'front' : 'back'
    if (digit === 9) look.delete(place)
    const color = digit === 8 ? nearest(codes.slice(at + 1, at + 5)) : digit
    if (color < 8) look.set(place, `ansi-${isFront ? '' : 'on-'}${color}`)
    if (digit === 8) at += codes[at + 1] === 2 ? 4 : 2
  }
}

/** The nearest of eight colors to one of 256 or of 16 million. */
function nearest([kind, first = 0, ...others]: readonly number[]): number {
  if (kind === 2) return brightParts([first, ...others])
  if (first < 16) return first % 8
  if (first >= 232) return first < 240 ? 0 : 7
  const cube = first - 16
  return brightParts([Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6])
}

function brightParts(parts: readonly number[]): number {
  const most = Math.max(...parts)
  return parts.reduce((color, part, at) => color + (part > most / 2 ? 2 ** at : 0), 0)
}
