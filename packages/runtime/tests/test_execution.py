"""Functions whose source comes with the call."""
import asyncio
import base64
import sys
import unittest

import cloudpickle

from runpod_sdk_runtime import execution

SOURCE = '''
import inspect

def double(value):
    print("doubling")
    return value * 2

async def slow(value):
    return value

def numbers(to):
    for number in range(to):
        print(number)
        yield number

def fail():
    raise ValueError("no luck")

def weird():
    return {1, 2}

def own_source():
    return inspect.getsource(double)

if __name__ == "__main__":
    raise SystemExit("the program of the file has run")
'''


def request(name, *args, **members):
    """A FunctionRequest with JSON arguments."""
    return {
        'function_name': name,
        'function_code': SOURCE,
        'args': list(args),
        'kwargs': {},
        'serialization_format': 'json',
        **members,
    }


def answers(*args, **members):
    """All answers to a request."""

    async def collect():
        return [answer async for answer in execution.answers(request(*args, **members))]

    return asyncio.run(collect())


class Answers(unittest.TestCase):
    """The answers of one request."""

    def setUp(self):
        execution.tee_output()
        self.addCleanup(setattr, sys, 'stdout', sys.stdout._stream)

    def test_a_result_with_what_was_printed(self):
        self.assertEqual(answers('double', 4), [{'success': True, 'json_result': 8, 'stdout': 'doubling\n'}])

    def test_an_async_function(self):
        self.assertEqual(answers('slow', 'x')[0]['json_result'], 'x')

    def test_a_generator_answers_chunk_by_chunk(self):
        chunks = answers('numbers', 2)
        self.assertEqual([chunk['json_result'] for chunk in chunks], [0, 1])
        self.assertTrue(all(chunk['__stream__'] for chunk in chunks))
        self.assertEqual([chunk['stdout'] for chunk in chunks], ['0\n', '1\n'])

    def test_a_generator_is_one_list_where_one_answer_is_wanted(self):
        answer = asyncio.run(execution.whole_answer(request('numbers', 3)))
        self.assertEqual(answer, {'success': True, 'json_result': [0, 1, 2], 'stdout': '0\n1\n2\n'})

    def test_a_failure_has_its_traceback(self):
        [answer] = answers('fail')
        self.assertFalse(answer['success'])
        self.assertIn('ValueError: no luck', answer['error'])
        self.assertIn('in fail', answer['error'])

    def test_a_value_that_json_cannot_carry_is_a_failure(self):
        self.assertIn('not JSON serializable', answers('weird')[0]['error'])

    def test_a_function_reads_its_own_source(self):
        self.assertIn('def double', answers('own_source')[0]['json_result'])

    def test_an_unknown_function_is_named(self):
        self.assertIn('the source has no function missing', answers('missing')[0]['error'])

    def test_values_of_cloudpickle(self):
        pickled = base64.b64encode(cloudpickle.dumps({1, 2})).decode()
        [answer] = answers('double', serialization_format='cloudpickle', args=[], kwargs={'value': pickled})
        self.assertIn('TypeError', answer['error'])
        [answer] = answers('weird', serialization_format='cloudpickle')
        self.assertEqual(execution.unpickled(answer['result']), {1, 2})

    def test_missing_packages_of_the_system_fail_the_call_alone(self):
        [answer] = answers('double', 1, system_dependencies=['no-such-program'])
        self.assertIn('no-such-program', answer['error'])

    def test_a_long_dev_session_keeps_the_latest_sources_alone(self):
        first = execution.load_source(SOURCE)
        for edit in range(3 * execution.MOST_MODULES):
            execution.load_source(f'edit = {edit}')
            self.assertIs(execution.load_source(SOURCE), first)
        self.assertEqual(len(execution._modules), execution.MOST_MODULES)


if __name__ == '__main__':
    unittest.main()
