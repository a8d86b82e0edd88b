"""Edit to result: seconds from the save of a file to its new result in one dev session, for a function and a route.

    eval "$(runyard sdk env)" && python bench/dev-session.py

The Python has runpod 2.0, and the server runs with --tls-self-signed and --process-root. Each of 20 edits is written,
the endpoints are saved as the session does, and the new result is called.
"""
import asyncio
import importlib.util
import linecache
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

# Before the import of the SDK, which reads it.
os.environ['RUNPOD_DEV_SESSION'] = '1'
from runpod.apps.dev import DevSession  # noqa: E402

EDITS = 20
SOURCE = '''
import runpod
app = runpod.App("edit")

@app.queue(name="adder", cpu="cpu3c-1-2", workers=(1, 3))
def add(a):
    return a + {n}

@app.api(name="words", cpu="cpu3c-1-2", workers=(1, 3))
class Words:
    @runpod.post("/word")
    def word(self, body):
        return {{"n": {n}}}
'''


def edit(folder, n):
    """Writes the file with another number, and imports it."""
    path = Path(folder) / 'edited.py'
    path.write_text(SOURCE.format(n=n))
    spec = importlib.util.spec_from_file_location(f'edited_{n}', path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    linecache.checkcache()
    spec.loader.exec_module(module)
    return module


async def main(folder):
    """Measures all edits, and prints the medians."""
    module = edit(folder, 0)
    async with DevSession([module.app]) as session:
        await module.add.remote.aio(0)
        await module.Words.post.aio('/word', {})
        functions, routes = [], []
        for n in range(1, EDITS + 1):
            start = time.monotonic()
            module = edit(folder, n)
            await session.refresh([module.app])
            assert await module.add.remote.aio(0) == n
            functions.append(time.monotonic() - start)
            start = time.monotonic()
            assert await module.Words.post.aio('/word', {}) == {'n': n}
            routes.append(time.monotonic() - start)
        print(f'load {os.getloadavg()[0]:.1f}')
        for name, times in (('function', functions), ('route', routes)):
            print(f'{name}: median {statistics.median(times):.2f} s, at most {max(times):.2f} s')


with tempfile.TemporaryDirectory() as own_folder:
    asyncio.run(main(own_folder))
