/** Memory of cards with its owners, and output of tools that is invalid. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { parseCardMemory } from '../../../src/system/gpu/gpu-meter.ts'
import { CARD, FakeGpus, MIB, noFakeGpus, SECOND_CARD } from '../../support/fake-gpus.ts'

describe('memory of cards', { skip: noFakeGpus }, () => {
  test('it is split into that of our processes and that of all others', async t => {
    const gpus = new FakeGpus(t, { foreign: '0,3000', cards: 2 })
    const [ours, other] = [await gpus.worker(1000), await gpus.worker(2000)]
    const { cards, problem } = await gpus.meter.measure(new Set([ours.pid]))
    assert.equal(problem, null)
    const [first, second] = cards
    // 512 MiB are the context of each.
    assert.equal(first?.ownBytes, 1512 * MIB)
    assert.equal(first?.foreignBytes, (3000 + 2512) * MIB)
    assert.equal(first?.usedBytes, (3000 + 1512 + 2512) * MIB)
    assert.equal(first?.totalBytes, 24_576 * MIB)
    assert.deepEqual(
      first?.processes.toSorted((a, b) => a.bytes! - b.bytes!),
      [
        { pid: ours.pid, name: 'node', bytes: 1512 * MIB },
        { pid: other.pid, name: 'node', bytes: 2512 * MIB },
      ],
    )
    assert.equal(second?.uuid, SECOND_CARD)
    assert.equal(second?.usedBytes, 0)
  })

  test('a machine without the tool says so', async t => {
    const gpus = new FakeGpus(t)
    gpus.env.PATH = '/nowhere'
    assert.deepEqual(await gpus.meter.measure(new Set()), { cards: [], problem: 'nvidia-smi is missing' })
  })
})

test('lines without values are left out, and the size of a process may be missing', () => {
  const cards = `0, ${CARD}, 24576, 100, 24476\n1, ${SECOND_CARD}, [N/A], [N/A], [N/A]\nUnable to determine the device handle\n`
  const processes = `17, ${CARD}, [N/A]\n18, ${CARD}, 90\n, , \n`
  assert.deepEqual(parseCardMemory(cards, processes), [
    {
      index: 0,
      uuid: CARD,
      totalBytes: 24_576 * MIB,
      usedBytes: 100 * MIB,
      freeBytes: 24_476 * MIB,
      processes: [
        { pid: 17, name: null, bytes: null },
        { pid: 18, name: null, bytes: 90 * MIB },
      ],
    },
  ])
})
