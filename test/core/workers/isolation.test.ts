/** Texts for people about workers that are not kept apart. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkCage, checkStrays } from '../../../src/core/observing/diagnosis.ts'
import { strayText, uncagedText } from '../../../src/core/workers/isolation.ts'

test('a start without cages says why, what a worker can read then, and what helps', () => {
  const lack = { reason: 'bubblewrap (bwrap) is not installed', action: 'install the package bubblewrap' }
  assert.equal(
    uncagedText({ ...lack, dataDir: '/srv/runyard', isRoot: false }),
    'Workers run without a cage (bubblewrap (bwrap) is not installed): a worker can read and change every file that the user of this server can, the keys in /srv/runyard among them, see and end other workers, and reach every port of this machine. To change that, install the package bubblewrap',
  )
  const wanted = uncagedText({ reason: '--worker-sandbox off', action: null, dataDir: '/d', isRoot: true })
  assert.match(wanted, /every file of this machine, .* keep them apart with --worker-sandbox auto$/)
})

test('the doctor says whether workers run in cages, by what the setting wants and this machine can', () => {
  const lack = { problem: 'cages need Linux', action: 'run workers in containers' }
  const found = (...of: Parameters<typeof checkCage>) => {
    const { state, message, action } = checkCage(...of)
    return [state, message, action ?? null].join(' | ')
  }
  assert.equal(found('auto', null, 'with limits'), 'ok | workers that are processes run in cages, with limits | ')
  assert.match(found('off', null, 'x'), /^warn \| .* without a cage, .* because of --worker-sandbox off \| leave/)
  assert.match(found('auto', lack, 'x'), /^warn \| .* all rights of the user of the server: cages need Linux \| run/)
  assert.match(found('required', lack, 'x'), /^warn \| no worker can be a process, since cages are required: cages/)
})

test('a machine on which processes can outlive their workers says so, at the start and by the doctor', () => {
  const lack = { problem: 'prlimit is missing', action: 'install util-linux' }
  const problem =
    'a process that leaves the session, the parents and the variables of its worker outlives it: prlimit is missing'
  assert.equal(strayText(lack), `Without a mark ${problem}. To change that, install util-linux`)
  assert.deepEqual(checkStrays(lack), {
    check: 'strays',
    state: 'warn',
    message: problem,
    action: 'install util-linux',
  })
  assert.equal(checkStrays(null).state, 'ok')
})
