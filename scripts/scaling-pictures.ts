/**
 * Draws the number of workers that the rules of the scaler in src/core/scaling want, into docs/guides/pictures.
 * `scripts/scaling-pictures.ts` writes the files; a test checks that they are up to date.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import type { Scaler } from '../src/core/endpoints/endpoint.ts'
import { desiredWorkers } from '../src/core/scaling/scale.ts'
import { aSnapshot, NOW } from '../test/support/snapshots.ts'

/** The folder of the pictures. */
export const PICTURES = new URL('../docs/guides/pictures/', import.meta.url)

const JOBS = 20
const DELAY_S = 4
const PER_WORKER = 4
const WIDTH = 600
const HEIGHT = 260
const LEFT = 40
const TOP = 24
const STYLE = `text { font: 12px system-ui, sans-serif; fill: #57606a } path { fill: none; stroke-width: 2 } .axis { stroke: #8c959f; stroke-width: 1 } .formula { stroke: #8c959f; stroke-dasharray: 4 3 } .own { stroke: #1a7f64 } circle { fill: #1a7f64 }
  @media (prefers-color-scheme: dark) { text { fill: #9da7b1 } .axis, .formula { stroke: #6e7681 } .own { stroke: #2ea886 } circle { fill: #2ea886 } }`

interface Curve {
  readonly name: string
  readonly kind: 'own' | 'formula'
  readonly at: (x: number) => number
}

interface Picture {
  readonly title: string
  readonly across: string
  readonly mostX: number
  readonly stepX: number
  readonly mostY: number
  readonly curves: readonly Curve[]
  /** Highlighted points. */
  readonly corners: readonly number[]
}

function wanted(scaler: Scaler, jobs: number, averageS: number): number {
  const endpoint = { scaler, workersMax: 1_000 }
  return desiredWorkers(aSnapshot({ endpoint, queue: { queued: jobs }, averageExecutionMs: averageS * 1_000 }), NOW)
    .desired
}

const queueDelay = (averageS: number) => wanted({ type: 'QUEUE_DELAY', queueDelayS: DELAY_S }, JOBS, averageS)
const requestCount = (jobs: number) => wanted({ type: 'REQUEST_COUNT', requestCount: PER_WORKER }, jobs, 1)

/** The pictures by the names of their files. */
export const SCALING_PICTURES: Readonly<Record<string, Picture>> = {
  'queue-delay.svg': {
    title: `QUEUE_DELAY ${DELAY_S} with ${JOBS} jobs: workers wanted`,
    across: 'seconds that a job takes on average',
    mostX: 16,
    stepX: 2,
    mostY: JOBS,
    curves: [
      {
        name: 'whole rounds of jobs within the delay',
        kind: 'formula',
        at: averageS => Math.ceil(JOBS / (Math.floor(DELAY_S / averageS) + 1)),
      },
      { name: 'Runyard', kind: 'own', at: queueDelay },
    ],
    corners: [1, 4 / 3, 2, 4],
  },
  'request-count.svg': {
    title: `REQUEST_COUNT ${PER_WORKER}: workers wanted`,
    across: 'waiting and running jobs',
    mostX: JOBS,
    stepX: 4,
    mostY: 6,
    curves: [{ name: 'Runyard', kind: 'own', at: requestCount }],
    corners: [],
  },
}

/** A picture as SVG. */
export function drawPicture({ title, across, mostX, stepX, mostY, curves, corners }: Picture): string {
  const x = (value: number) => LEFT + (value / mostX) * WIDTH
  const y = (value: number) => TOP + HEIGHT - (value / mostY) * HEIGHT
  const parts = [
    `<text x="0" y="14" font-weight="600">${title}</text>`,
    `<path class="axis" d="M${LEFT} ${TOP} V${TOP + HEIGHT} H${LEFT + WIDTH}"/>`,
    `<text x="${LEFT + WIDTH / 2}" y="${TOP + HEIGHT + 36}" text-anchor="middle">${across}</text>`,
  ]
  for (let at = 0; at <= mostX; at += stepX)
    parts.push(`<text x="${x(at)}" y="${TOP + HEIGHT + 18}" text-anchor="middle">${at}</text>`)
  for (let at = 0; at <= mostY; at += mostY <= 10 ? 1 : 5)
    parts.push(`<text x="${LEFT - 8}" y="${y(at) + 4}" text-anchor="end">${at}</text>`)
  for (const [index, { name, kind, at }] of curves.entries()) {
    parts.push(`<path class="${kind}" d="${stepPath(at, mostX, x, y)}"/>`)
    const top = TOP + 16 + (curves.length - 1 - index) * 18
    parts.push(
      `<path class="${kind}" d="M${LEFT + 20} ${top - 4} h24"/><text x="${LEFT + 52}" y="${top}">${name}</text>`,
    )
  }
  const curve = curves.at(-1)!
  for (const corner of corners)
    parts.push(`<circle cx="${rounded(x(corner))}" cy="${rounded(y(curve.at(corner)))}" r="3.5"/>`)
  const size = `viewBox="0 0 ${LEFT + WIDTH + 20} ${TOP + HEIGHT + 44}"`
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size}>\n<title>${title}</title>\n<style>${STYLE}</style>\n${parts.join('\n')}\n</svg>\n`
}

/** A line that is level between the places where the value changes. */
function stepPath(
  at: (x: number) => number,
  mostX: number,
  x: (value: number) => number,
  y: (value: number) => number,
): string {
  const steps = 1_600
  let last = at(mostX / steps)
  let path = `M${x(0)} ${rounded(y(last))}`
  for (let step = 2; step <= steps; step += 1) {
    const value = (step / steps) * mostX
    const now = at(value)
    if (now !== last) path += ` H${rounded(x(value))} V${rounded(y(now))}`
    last = now
  }
  return `${path} H${x(mostX)}`
}

function rounded(value: number): number {
  return Math.round(value * 10) / 10
}

if (import.meta.main) {
  mkdirSync(PICTURES, { recursive: true })
  for (const [name, picture] of Object.entries(SCALING_PICTURES))
    writeFileSync(new URL(name, PICTURES), drawPicture(picture))
}
