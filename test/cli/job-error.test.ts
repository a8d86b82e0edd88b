import assert from 'node:assert/strict'
import { test } from 'node:test'
import { jobErrorText } from '../../src/cli/terminal/job-error.ts'

const traceback =
  'Traceback (most recent call last):\n  File "handler.py", line 3, in handler\n    return 1 / 0\nZeroDivisionError: division by zero\n'

test('the error of a Python handler is shown as its traceback', () => {
  const error = {
    error_type: "<class 'ZeroDivisionError'>",
    error_message: 'division by zero',
    error_traceback: traceback,
  }
  assert.equal(jobErrorText(JSON.stringify(error)), traceback.trimEnd())
  const bare = { ...error, error_traceback: 'Traceback (most recent call last):\n  File "handler.py"\n' }
  assert.match(jobErrorText(JSON.stringify(bare)), /\nZeroDivisionError: division by zero$/)
})

test('any other error is shown as it is', () => {
  for (const error of ['no weights', '{"code":7}', '{"error_traceback":7}', 'null', '[1]'])
    assert.equal(jobErrorText(error), error)
})
