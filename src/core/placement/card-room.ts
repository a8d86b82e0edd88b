/** The measured memory of cards, with the part of programs that are not workers. In MiB. */
import type { MachineGpu } from '../hardware/inventory.ts'

/** A program on a card that is not a worker. */
export interface ForeignProgram {
  readonly pid: number
  /** Name of its program; null if unknown. */
  readonly name: string | null
  readonly memoryMb: number
}

/** The memory of a card, as measured. */
export interface CardRoom {
  readonly totalMb: number
  /** Memory that no program uses now. */
  readonly freeMb: number
  /** Memory of programs that are not workers: the larger of the last two readings, so that a dip admits nobody. */
  readonly foreignMb: number
  /** Those with the most memory, the largest first; empty if the driver does not list them. */
  readonly programs: readonly ForeignProgram[]
}

/** The measured cards by their `gpuKey`; a card that is not in it is judged by the claims alone. */
export type CardRooms = ReadonlyMap<string, CardRoom>

/** Limit of programs that are named in one reason. */
const MAX_NAMED = 3

/** Memory that stays free on a card beside all shares: drivers and contexts take more than programs ask for. */
export function marginMb(totalMb: number): number {
  return Math.max(512, Math.ceil(totalMb * 0.02))
}

/**
 * The part of a card that other programs may use if a worker gets the whole card: a tenth, and at least 1 GiB, as a
 * desktop needs.
 */
function toleratedMb({ totalMb }: CardRoom): number {
  return Math.max(1_024, totalMb * 0.1)
}

/** True if programs of others leave enough of a card for a worker that gets all of it. */
export function leavesCard(room: CardRoom | undefined): boolean {
  return room === undefined || room.foreignMb <= toleratedMb(room)
}

/** The use of a card by other programs, for every account: "4.1 GB of card 0 are used by other programs". */
export function otherUseText({ index }: Pick<MachineGpu, 'index'>, { foreignMb }: CardRoom): string {
  return `${inGb(foreignMb)} of card ${index} are used by other programs`
}

/** True if this much memory of a card is free. */
export function isFree(room: CardRoom | undefined, neededMb: number): boolean {
  return room === undefined || room.freeMb >= neededMb
}

/** As {@link otherUseText}, with names for the operator: "4.1 GB of card 0 are used by pid 812 (blender)". */
export function foreignUseText({ index }: Pick<MachineGpu, 'index'>, { foreignMb, programs }: CardRoom): string {
  const named = programs.slice(0, MAX_NAMED).map(({ pid, name }) => `pid ${pid}${name === null ? '' : ` (${name})`}`)
  const listedMb = programs.slice(0, MAX_NAMED).reduce((sum, { memoryMb }) => sum + memoryMb, 0)
  const isRest = named.length === 0 || foreignMb - listedMb > foreignMb / 10
  const users = [...named, ...(isRest ? ['other programs'] : [])]
  return `${inGb(foreignMb)} of card ${index} are used by ${users.join(', ')}`
}

/** An amount of memory for people: "4.1 GB". */
export function inGb(mb: number): string {
  return `${Math.round(mb / 102.4) / 10} GB`
}
