/** Finds words that the vocabulary of the project replaced: each thing has one name. */
import { type Finding, findingsOf } from './scan.ts'

/**
 * Replaced words, and the words to use instead. A space stands for any gap, also one between two lines of a comment.
 */
const REPLACED: readonly (readonly [word: string, instead: string])[] = [
  ['in line', 'in the queue'],
  ['take lines?', 'poll queue'],
  ['sightings?', 'worker activity'],
  ['worker stor(?:y|ies)', 'worker history'],
  ['clock on the wall', 'wall clock'],
  ['answered for', 'acknowledged'],
  ['isStranger', 'isAnonymous'],
  ['takeLines?', 'poll queue'],
  ['breakLines', 'mutateRequestQueues'],
  ['probation', 'on trial'],
  ['for so long', 'how long'],
]

const PATTERNS = REPLACED.map(
  ([word, instead]) =>
    [new RegExp(String.raw`\b${word.replaceAll(' ', String.raw`[\s*/]+`)}\b`, 'gi'), instead] as const,
)

/** Replaced words in a source, in names, comments and texts. */
export function findReplacedWords(source: string): Finding[] {
  return PATTERNS.flatMap(([pattern, instead]) =>
    findingsOf(source, pattern, match => `'${match[0].replace(/[\s*/]+/g, ' ')}', which is now '${instead}'`),
  )
}
