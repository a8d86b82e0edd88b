"""Workers of queues and of APIs, with the SDK's own handles."""
import asyncio
import json
import sys
import tempfile
import time
import types
import unittest
from pathlib import Path

from runpod_sdk_runtime import api_worker, queue_worker
from runpod_sdk_runtime.resources import deployed_handle, find_handle

from .support import PROJECT, Running, WithFolder, call, write_build


def handle(name):
    """The handle of a resource of the project."""
    module = types.ModuleType('shop_main')
    sys.modules['shop_main'] = module
    exec(PROJECT, vars(module))
    return find_handle(module, name)


async def collect(generator):
    """All values of a generator."""
    return [value async for value in generator]


class Queues(WithFolder):
    """The handlers of queue workers."""

    def test_the_resource_is_found_by_its_name_in_the_manifest(self):
        write_build(self.folder, [{'name': 'counter'}])
        sys.modules.pop('shop_main', None)
        sys.path.insert(0, str(self.folder))
        self.addCleanup(sys.path.remove, str(self.folder))
        self.assertEqual(deployed_handle(self.folder, 'counter').spec.name, 'counter')
        with self.assertRaisesRegex(LookupError, 'no resource other'):
            deployed_handle(self.folder, 'other')

    def test_init_runs_before_the_first_job_and_the_input_is_the_arguments(self):
        handler = queue_worker.deployed_handler(handle('adder'))
        self.assertEqual(asyncio.run(handler({'input': {'a': 1, 'b': 2}})), ['started', 3])

    def test_the_mark_of_an_empty_input_is_no_argument(self):
        handler = queue_worker.deployed_handler(handle('adder'))
        self.assertEqual(asyncio.run(handler({'input': {'__empty': True}})), ['started', 0])

    def test_a_generator_stays_one(self):
        handler = queue_worker.deployed_handler(handle('counter'))
        self.assertEqual(list(handler({'input': {'to': 2}})), [0, 1])

    def test_a_live_job_brings_its_source(self):
        request = {'function_name': 'add', 'function_code': PROJECT, 'args': [1, 2], 'serialization_format': 'json'}
        [answer] = asyncio.run(collect(queue_worker.live_handler({'input': request})))
        self.assertEqual(answer['json_result'], [3])


class Apis(unittest.TestCase):
    """The application of API workers."""

    def test_a_class_serves_once_its_init_is_over(self):
        async def check():
            app = api_worker.Api(api_worker.application(handle('words')))
            self.assertEqual((await call(app, 'GET', '/ping'))[0], 204)
            async with Running(app):
                await until_ready(app)
                status, body = await call(app, 'POST', '/word', {'letter': 'a'})
                self.assertEqual((status, json.loads(body)), (200, {'word': 'alpha'}))
                self.assertEqual(json.loads((await call(app, 'GET', '/all'))[1]), {'a': 'alpha'})
                self.assertEqual((await call(app, 'GET', '/_runpod/sync'))[0], 404)

        asyncio.run(check())

    def test_a_factory_gets_a_health_check(self):
        async def check():
            app = api_worker.Api(api_worker.application(handle('plain')))
            async with Running(app):
                await until_ready(app)
                self.assertEqual(await call(app, 'GET', '/any/path'), (200, b'/any/path'))

        asyncio.run(check())

    def test_a_process_of_a_machine_is_reached_from_that_alone(self):
        self.assertEqual(api_worker.listening_host({'RUNYARD_PROCESS_WORKER': '1'}), '127.0.0.1')
        self.assertEqual(api_worker.listening_host({}), '0.0.0.0')

    def test_a_live_worker_serves_what_another_one_of_its_endpoint_got(self):
        async def check(shared):
            first, second = api_worker.Api(None, shared), api_worker.Api(None, shared)
            async with Running(first), Running(second):
                await sync(first, PROJECT)
                self.assertEqual(json.loads((await call(second, 'GET', '/all'))[1]), {'a': 'alpha'})
                await sync(second, PROJECT.replace('alpha', 'beta'))
                self.assertEqual(json.loads((await call(first, 'GET', '/all'))[1]), {'a': 'beta'})
            # One that starts after the calls of the client.
            third = api_worker.Api(None, shared)
            async with Running(third):
                self.assertEqual((await call(third, 'GET', '/ping'))[0], 200)
                self.assertEqual(json.loads((await call(third, 'GET', '/all'))[1]), {'a': 'beta'})

        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(check(Path(folder) / 'live-source.json'))

    def test_a_live_worker_serves_what_was_synced_last(self):
        async def check():
            app = api_worker.Api(None)
            async with Running(app):
                self.assertEqual((await call(app, 'GET', '/ping'))[0], 200)
                self.assertEqual((await call(app, 'GET', '/all'))[0], 404)
                await sync(app, PROJECT)
                self.assertEqual(json.loads((await call(app, 'GET', '/all'))[1]), {'a': 'alpha'})
                await sync(app, PROJECT.replace('alpha', 'beta'))
                self.assertEqual(json.loads((await call(app, 'GET', '/all'))[1]), {'a': 'beta'})
                status, body = await call(app, 'POST', '/_runpod/sync', {'source': 'x = 1', 'resource': 'words'})
                self.assertEqual(status, 500)
                self.assertIn(b'has no resource words', body)
                self.assertEqual((await call(app, 'GET', '/all'))[0], 200)

        asyncio.run(check())


async def sync(app, source):
    """Gives a live worker its source."""
    status, body = await call(app, 'POST', '/_runpod/sync', {'source': source, 'resource': 'words'})
    assert (status, json.loads(body)['status']) == (200, 'synced'), body


async def until_ready(app):
    """Waits for the health check to be 200."""
    end = time.monotonic() + 30
    while (await call(app, 'GET', '/ping'))[0] != 200:
        assert time.monotonic() < end
        await asyncio.sleep(0.01)


if __name__ == '__main__':
    unittest.main()
