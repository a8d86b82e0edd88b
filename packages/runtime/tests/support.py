"""A project as the SDK deploys it, and calls of ASGI applications."""
import asyncio
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PACKAGE = str(Path(__file__).parent.parent)

PROJECT = '''
import runpod

app = runpod.App("shop")

@app.queue(name="adder", cpu="cpu3c-1-2")
def add(a=0, b=0):
    return STARTED + [a + b]

STARTED = []

@add.init
async def start():
    STARTED.append("started")

@app.queue(name="counter", cpu="cpu3c-1-2")
def count(to=3):
    yield from range(to)

@app.api(name="words", cpu="cpu3c-1-2")
class Words:
    @runpod.init
    def load(self):
        self.known = {"a": "alpha"}

    @runpod.post("/word")
    def word(self, body):
        return {"word": self.known[body["letter"]]}

    @runpod.get("/all")
    async def all(self):
        return self.known

@app.api(name="plain", cpu="cpu3c-1-2")
def plain():
    async def answer(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": scope["path"].encode()})
    return answer
'''


class WithFolder(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)


def write_build(folder, resources, source=PROJECT, **manifest):
    """Writes an unpacked build, whose module is ``shop_main``."""
    (folder / 'env').mkdir()
    (folder / 'shop_main.py').write_text(source)
    entries = [{'module': 'shop_main', **resource} for resource in resources]
    (folder / 'runpod_manifest.json').write_text(json.dumps({'version': 1, 'resources': entries, **manifest}))


def run_module(name, env, cwd):
    """Runs a module of the runtime as a worker would be run."""
    variables = {'PATH': '/usr/bin:/bin', 'PYTHONPATH': PACKAGE, 'HOME': str(cwd), **env}
    return subprocess.run(
        [sys.executable, '-m', name], env=variables, cwd=cwd, capture_output=True, text=True, timeout=60, check=False
    )


async def call(app, method, path, body=None):
    """The status and the body of one request to an ASGI application."""
    content = b'' if body is None else json.dumps(body).encode()
    sent = []

    async def receive():
        return {'type': 'http.request', 'body': content}

    async def send(message):
        sent.append(message)

    headers = [(b'content-type', b'application/json'), (b'host', b'worker')]
    scope = {'type': 'http', 'method': method, 'path': path, 'raw_path': path.encode(), 'query_string': b''}
    await app({**scope, 'headers': headers, 'http_version': '1.1', 'scheme': 'http', 'root_path': ''}, receive, send)
    return sent[0]['status'], b''.join(message.get('body', b'') for message in sent[1:])


class Running:
    """An application with its lifespan, as a server runs it."""

    def __init__(self, app):
        self._app = app
        self._messages = asyncio.Queue()

    async def __aenter__(self):
        started = asyncio.Event()

        async def send(message):
            if message['type'] == 'lifespan.startup.complete':
                started.set()

        self._task = asyncio.ensure_future(self._app({'type': 'lifespan'}, self._messages.get, send))
        await self._messages.put({'type': 'lifespan.startup'})
        await started.wait()
        return self

    async def __aexit__(self, *_):
        await self._messages.put({'type': 'lifespan.shutdown'})
        await self._task
