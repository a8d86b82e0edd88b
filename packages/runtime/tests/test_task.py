"""The server of a task."""
import http.client
import json
import threading
import time
import unittest
from http.server import ThreadingHTTPServer

from runpod_sdk_runtime.task.runner import Task, handler_for

SOURCE = '''
import time

def wait(path):
    while True:
        try:
            return open(path).read()
        except OSError:
            time.sleep(0.01)

def double(value):
    return value * 2
'''


class Tasks(unittest.TestCase):
    """Calls of the client to one task."""

    def setUp(self):
        self.task = Task('token')
        self.server = ThreadingHTTPServer(('127.0.0.1', 0), handler_for(self.task))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)

    def ask(self, method, path, body=None, token='token'):
        """The status and the answer of one call."""
        connection = http.client.HTTPConnection('127.0.0.1', self.server.server_port, timeout=30)
        self.addCleanup(connection.close)
        content = None if body is None else json.dumps(body)
        connection.request(method, path, content, {'authorization': f'Bearer {token}'})
        response = connection.getresponse()
        return response.status, json.loads(response.read())

    def request(self, name, *args, **members):
        """A FunctionRequest."""
        source = {'function_name': name, 'function_code': SOURCE, 'args': list(args)}
        return {**source, 'serialization_format': 'json', **members}

    def test_a_submitted_function_keeps_its_answer(self):
        self.assertEqual(self.ask('GET', '/result')[1], {'status': 'NONE', 'response': None})
        status, answer = self.ask('POST', '/submit', self.request('double', 4, timeout=60))
        self.assertEqual((status, answer), (200, {'status': 'RUNNING', 'timeout': 60}))
        end = time.monotonic() + 30
        while self.ask('GET', '/result')[1]['status'] != 'DONE':
            self.assertLess(time.monotonic(), end)
        for _ in range(2):
            self.assertEqual(self.ask('GET', '/result')[1]['response']['json_result'], 8)

    def test_a_second_function_is_refused_while_one_runs(self):
        self.ask('POST', '/submit', self.request('wait', '/nowhere'))
        self.assertEqual(self.ask('POST', '/submit', self.request('double', 1))[0], 409)

    def test_only_its_token_opens_it(self):
        for method, path in [('GET', '/result'), ('POST', '/submit'), ('POST', '/execute'), ('GET', '/../etc')]:
            self.assertEqual(self.ask(method, path, token='other')[0], 401)
        self.assertEqual(self.ask('GET', '/ping', token='')[0], 200)

    def test_it_is_over_when_nobody_asks_or_its_time_has_come(self):
        self.task.idle_s = 0
        self.assertTrue(self.task.is_over())
        self.task.idle_s = 60
        self.ask('GET', '/result')
        self.assertFalse(self.task.is_over())
        self.assertEqual(self.ask('POST', '/timeout', {'timeout': 0})[1], {'timeout': 0})
        self.assertTrue(self.task.is_over())


if __name__ == '__main__':
    unittest.main()
