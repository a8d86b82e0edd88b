/** Colours of terminals (ECMA-48, SGR): read into ranges with classes, since the page has no inline styles. */

/** A stretch of a text with the classes that show it. */
export interface Style {
  readonly from: number
  readonly to: number
  readonly classes: string
}

/** A text without its control sequences. */
export interface PlainText {
  readonly text: string
  /** In order, without overlaps; null where the text has no colours. */
  readonly styles: readonly Style[] | null
}

const character = String.fromCharCode
const ESC = character(27)
const BELL = character(7)
/** All control characters but tabs and line ends. */
const CONTROL = `[${character(0)}-${character(8)}${character(11)}-${character(31)}${character(127)}-${character(159)}]`
/** SGR is the first form; then other CSI sequences, OSC with its end, other escapes, and the controls that are left. */
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

interface Look {
  bold: boolean
  dim: boolean
  italic: boolean
  underline: boolean
  /** 0 to 15, null for the colour of the page. */
  front: number | null
  back: number | null
}

/** Reads the control sequences of a line. */
export function readAnsi(line: string): PlainText {
  if (!HAS_CONTROLS.test(line)) return { text: line, styles: null }
  const look: Look = { ...PLAIN }
  const styles: Style[] = []
  let text = ''
  let end = 0
  const add = (until: number) => {
    const from = text.length
    text += line.slice(end, until)
    const classes = classesOf(look)
    if (classes === '' || text.length === from) return
    const last = styles.at(-1)
    if (last?.classes === classes && last.to === from) styles[styles.length - 1] = { ...last, to: text.length }
    else styles.push({ from, to: text.length, classes })
  }
  for (const found of line.matchAll(CONTROLS)) {
    add(found.index)
    end = found.index + found[0].length
    if (found[1] !== undefined) change(look, found[1])
  }
  add(line.length)
  return { text, styles: styles.length === 0 ? null : styles }
}

const PLAIN: Readonly<Look> = { bold: false, dim: false, italic: false, underline: false, front: null, back: null }

function change(look: Look, parameters: string): void {
  const codes = parameters.split(/[;:]/).map(Number)
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at]!
    if (code === 38 || code === 48) {
      const { colour, length } = extended(codes.slice(at + 1))
      look[code === 38 ? 'front' : 'back'] = colour
      at += length
    } else changeOne(look, code)
  }
}

function changeOne(look: Look, code: number): void {
  if (code === 0) Object.assign(look, PLAIN)
  else if (code === 1) look.bold = true
  else if (code === 2) look.dim = true
  else if (code === 3) look.italic = true
  else if (code === 4) look.underline = true
  else if (code === 22) look.bold = look.dim = false
  else if (code === 23) look.italic = false
  else if (code === 24) look.underline = false
  else if (code >= 30 && code <= 37) look.front = code - 30
  else if (code === 39) look.front = null
  else if (code >= 40 && code <= 47) look.back = code - 40
  else if (code === 49) look.back = null
  else if (code >= 90 && code <= 97) look.front = code - 82
  else if (code >= 100 && code <= 107) look.back = code - 92
}

/** A colour of 256 or of 16 million, as the nearest of the 16 that a theme has. */
function extended([kind, ...rest]: readonly number[]): { colour: number | null; length: number } {
  if (kind === 5) return { colour: ofIndex(rest[0] ?? 0), length: 2 }
  if (kind === 2) return { colour: nearest(rest[0] ?? 0, rest[1] ?? 0, rest[2] ?? 0), length: 4 }
  return { colour: null, length: 0 }
}

function ofIndex(index: number): number {
  if (index < 16) return index
  if (index >= 232) return index < 240 ? 8 : 7
  const cube = index - 16
  const part = (value: number) => (value === 0 ? 0 : 55 + value * 40)
  return nearest(part(Math.floor(cube / 36)), part(Math.floor(cube / 6) % 6), part(cube % 6))
}

function nearest(red: number, green: number, blue: number): number {
  const high = Math.max(red, green, blue)
  const bit = (value: number, weight: number) => (high > 40 && value > high / 2 ? weight : 0)
  const colour = bit(red, 1) + bit(green, 2) + bit(blue, 4)
  return high > 190 && colour !== 7 ? colour + 8 : colour
}

function classesOf({ bold, dim, italic, underline, front, back }: Look): string {
  const classes = [
    bold ? 'ansi-bold' : '',
    dim ? 'ansi-dim' : '',
    italic ? 'ansi-italic' : '',
    underline ? 'ansi-underline' : '',
    front === null ? '' : `ansi-${front % 8}`,
    back === null ? '' : `ansi-on-${back % 8}`,
  ]
  return classes.filter(one => one !== '').join(' ')
}
