/** Failed checks of schemas as sentences for people. */

/** Sentences of zod by their forms, with the words that people read. */
const WORDINGS: readonly (readonly [RegExp, (...groups: string[]) => string])[] = [
  [/^too big: expected \w+ to be <=(\S+)$/, most => `must be at most ${most}`],
  [/^too small: expected \w+ to be >=(\S+)$/, least => `must be at least ${least}`],
  [/^too small: expected \w+ to have >=1 \w+$/, () => 'must not be empty'],
  [/^too small: expected \w+ to have >=(\d+) (\w+)$/, (least, what) => `must have at least ${least} ${what}`],
  [/^too big: expected \w+ to have <=(\d+) (\w+)$/, (most, what) => `must have at most ${most} ${what}`],
  [/^invalid input: expected int, received number$/, () => 'must be a whole number'],
  [/^invalid input: expected (\w+), received NaN$/, wanted => `must be ${typeWithArticle(wanted)}`],
  [
    /^invalid input: expected (\w+), received (\w+)$/,
    (wanted, got) => `must be ${typeWithArticle(wanted)}, not ${typeWithArticle(got)}`,
  ],
  [/^invalid option: expected one of (.+)$/, list => `must be ${alternatives(list)}`],
  [/^invalid discriminator value\. Expected (.+)$/, list => `must be ${alternatives(list)}`],
  [/^invalid input: expected (".+)$/, list => `must be ${alternatives(list)}`],
  [/^invalid ISO datetime$/, () => 'must be a date and time such as 2027-01-31T12:00:00Z'],
]

/** The predicate of a failed check in words for people, such as `must be at least 1`; others are as they were. */
export function plainProblem(problem: string): string {
  for (const [pattern, wording] of WORDINGS) {
    const match = pattern.exec(problem)
    if (match !== null) return wording(...match.slice(1))
  }
  return problem
}

function typeWithArticle(type: string): string {
  if (type === 'undefined' || type === 'null') return type === 'null' ? 'null' : 'missing'
  return /^[aeio]/.test(type) ? `an ${type}` : `a ${type}`
}

/** `"A"|"B"|"C"` as `A, B or C`. */
function alternatives(list: string): string {
  const all = list.split('|').map(one => one.trim().replaceAll(/^["']|["']$/g, ''))
  const last = all.pop()!
  return all.length === 0 ? last : `${all.join(', ')} or ${last}`
}
