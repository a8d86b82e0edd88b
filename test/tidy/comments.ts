/**
 * Finds comments whose subject is a question word, comment lines that are too long, names of missing files, and
 * classes that are no agents.
 */
import { codeOnly, commentsOf, type Finding, findingsOf } from './scan.ts'

/** A comment says what a thing is or does: the thing comes first. */
const QUESTION = /^[\s/*]*(What|Whether|How|When|Where|Who|Which|Why)\b/

/** Comments that begin with a question word. */
export function findQuestions(source: string): Finding[] {
  return commentsOf(source).flatMap(({ line, text }) => {
    const word = QUESTION.exec(text)?.[1]
    return word === undefined ? [] : [{ line, what: `a comment that begins with ${word}, not with its subject` }]
  })
}

/** Lines of comments that reach column 120, unless one address fills them. */
export function findWideComments(source: string): Finding[] {
  return commentsOf(source).flatMap(({ line, column, text }) =>
    text
      .split('\n')
      .map((words, at) => ({ line: line + at, width: words.length + (at === 0 ? column : 0), words }))
      .filter(({ width, words }) => width >= 120 && !/https?:\/\/\S{60}/.test(words))
      .map(({ line: at, width }) => ({ line: at, what: `a comment of ${width} columns` })),
  )
}

/** Paths of the repository that a comment names and `exists` does not know. */
export function findMissingPaths(source: string, exists: (path: string) => boolean): Finding[] {
  return commentsOf(source).flatMap(({ line, text }) =>
    findingsOf(
      text,
      /(?<![\w./-])(?:src|test|sim|console|scripts|bench|docs)\/[\w./-]*[\w-]\.(?:ts|tsx|md|mjs|sh)\b/g,
      match => match[0],
    )
      .filter(({ what }) => !exists(what))
      .map(({ line: at, what }) => ({ line: line + at - 1, what: `${what} does not exist` })),
  )
}

/** Classes whose names end in -ing: a class is something that acts. */
export function findDeeds(source: string): Finding[] {
  return findingsOf(codeOnly(source), /\bclass (\w+ing)\b/g, match => `class ${match[1]} is named for a deed`)
}
