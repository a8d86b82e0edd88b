"""A worker of an API: serves the class or the ASGI application of its resource on ``PORT``."""
import asyncio
import hashlib
import inspect
import json
import os
import traceback
from pathlib import Path

from . import execution
from .mounts import configure_mounts
from .packages import ON_MACHINE
from .resources import deployed_handle, find_handle, resource_name

# Clients keep connections, and a request on one that ends just then is lost.
KEEP_ALIVE_S = 600


def class_app(handle):
    """An application with the routes of a class. Returns it and the function that starts it."""
    from fastapi import FastAPI, Request

    instance = handle._cls()
    app = FastAPI()

    def route(method):
        parameters = inspect.signature(method).parameters

        async def endpoint(request: Request):
            args = body_arguments(await request.body()) if parameters else []
            if inspect.iscoroutinefunction(method):
                return await method(*args)
            return await asyncio.to_thread(method, *args)

        return endpoint

    for spec in handle.spec.routes:
        method = getattr(instance, spec.handler_name)
        app.add_api_route(spec.path, route(method), methods=[spec.method], response_model=None)

    async def start():
        if handle._init_name is not None:
            # A model that loads for minutes does not stop the health check.
            started = await asyncio.to_thread(getattr(instance, handle._init_name))
            if inspect.isawaitable(started):
                await started

    return app, start


def body_arguments(body):
    """The parsed JSON body as the one argument; no argument without a body, or for one that is no JSON."""
    try:
        return [json.loads(body)] if body else []
    except ValueError:
        return []


async def nothing():
    """The start of an application that needs none."""


class Api:
    """The ASGI application of a worker: its health check, and the user's application once that has started."""

    def __init__(self, loaded, shared=None):
        """``loaded`` is the result of ``application``; None for a live worker, which gets its source by a call.

        ``shared`` is a file with the source that a live worker of this endpoint got last.
        """
        self._shared = shared
        self._digest = None
        self._loaded = loaded
        self._app = None
        self._has_ping = False
        self._lifespan = None
        self._synced = asyncio.Lock()

    async def __call__(self, scope, receive, send):
        path = scope.get('path')
        if scope['type'] == 'lifespan':
            await self._serve_lifespan(receive, send)
        elif self._loaded is None and scope['type'] == 'http' and path in ('/_runpod/sync', '/execute'):
            await self._call_of_sdk(path, receive, send)
        elif self._loaded is None and path != '/ping' and not await self._follow():
            await respond(send, 500, {'detail': 'the source of this API does not start'})
        elif path == '/ping' and not self._has_ping:
            await respond(send, 200 if self._loaded is None or self._app is not None else 204)
        elif self._app is None:
            await respond(send, 404, {'detail': 'this worker has no application yet'})
        else:
            await self._app(scope, receive, send)

    async def _serve_lifespan(self, receive, send):
        """Starts the application beside the server, so that health checks are answered meanwhile."""
        await receive()
        starting = None if self._loaded is None else asyncio.ensure_future(self._start())
        await send({'type': 'lifespan.startup.complete'})
        await receive()
        if starting is not None:
            starting.cancel()
        if self._lifespan is not None:
            await self._lifespan.end()
        await send({'type': 'lifespan.shutdown.complete'})

    async def _start(self):
        try:
            await self._enter(*self._loaded)
        except Exception:
            traceback.print_exc()
            # The health check would be 204 for ever.
            os._exit(1)

    async def _enter(self, app, start, has_ping):
        """Starts an application, and puts it in the place of the one before."""
        lifespan = Lifespan(app)
        await lifespan.begin()
        await start()
        self._app, self._has_ping = app, has_ping
        previous, self._lifespan = self._lifespan, lifespan
        if previous is not None:
            await previous.end()

    async def _call_of_sdk(self, path, receive, send):
        try:
            request = json.loads(await read_body(receive))
        except ValueError:
            await respond(send, 400, {'detail': 'the body is not JSON'})
            return
        if path == '/execute':
            await respond(send, 200, await execution.whole_answer(request.get('input', request)))
            return
        try:
            await respond(send, 200, await self._sync(request))
        except Exception:
            await respond(send, 500, {'detail': traceback.format_exc()})

    async def _sync(self, request):
        """Replaces the application with that of a source."""
        async with self._synced:
            await self._load(request)
            if self._shared is not None:
                draft = self._shared.with_suffix(f'.{os.getpid()}')
                draft.write_text(json.dumps(request), encoding='utf-8')
                draft.replace(self._shared)
                self._digest = digest_of(self._shared)
            return {'status': 'synced', 'hash': hashlib.sha256(request['source'].encode()).hexdigest()}

    async def _load(self, request):
        await asyncio.to_thread(execution.prepare, request)
        module = execution.load_source(request['source'])
        await self._enter(*application(find_handle(module, request['resource'])))

    async def _follow(self):
        """Takes the source that another worker of the endpoint got: the client sends it to one. False if it fails."""
        digest = None if self._shared is None else digest_of(self._shared)
        if digest is None or digest == self._digest:
            return True
        async with self._synced:
            if digest == self._digest:
                return True
            try:
                await self._load(json.loads(self._shared.read_text(encoding='utf-8')))
            except Exception:
                traceback.print_exc()
                return False
            self._digest = digest
            return True


def digest_of(path):
    """Tells one content of a file from the next; None without a file."""
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_ino, facts.st_mtime_ns, facts.st_size


class Lifespan:
    """The start and the end of an ASGI application inside of another one."""

    def __init__(self, app):
        self._app = app
        self._to_app = asyncio.Queue()
        self._from_app = asyncio.Queue()
        self._task = None

    async def begin(self):
        """Starts the application. One that knows no lifespan is as good as started."""
        self._task = asyncio.ensure_future(self._run())
        await self._to_app.put({'type': 'lifespan.startup'})
        message = await self._from_app.get()
        if message['type'] == 'lifespan.startup.failed':
            raise RuntimeError(f"the application did not start: {message.get('message', '')}")

    async def _run(self):
        try:
            await self._app({'type': 'lifespan', 'asgi': {'version': '3.0'}}, self._to_app.get, self._from_app.put)
        except Exception:
            pass
        finally:
            await self._from_app.put({'type': 'ended'})

    async def end(self):
        """Ends the application."""
        if self._task is not None and not self._task.done():
            await self._to_app.put({'type': 'lifespan.shutdown'})
            await self._from_app.get()


def application(handle):
    """The application of a handle, its start, and whether it answers ``/ping`` itself."""
    if handle._cls is not None:
        return (*class_app(handle), False)
    app = handle._asgi_factory()
    has_ping = any(getattr(route, 'path', None) == '/ping' for route in getattr(app, 'routes', []))
    return app, nothing, has_ping


async def read_body(receive):
    """The whole body of a request."""
    body = b''
    while True:
        message = await receive()
        body += message.get('body', b'')
        if not message.get('more_body'):
            return body


async def respond(send, status, value=None):
    """Answers with JSON, or without a body."""
    body = b'' if value is None else json.dumps(value).encode()
    headers = [(b'content-length', str(len(body)).encode())] if status != 204 else []
    if body:
        headers.append((b'content-type', b'application/json'))
    await send({'type': 'http.response.start', 'status': status, 'headers': headers})
    await send({'type': 'http.response.body', 'body': body})


def listening_host(env):
    """The address to listen on. A live worker runs what it is sent, so one on a machine is open to that alone."""
    return '127.0.0.1' if ON_MACHINE in env else '0.0.0.0'


def main():
    """Serves requests until the worker is stopped."""
    import uvicorn

    configure_mounts()
    name = resource_name(os.environ)
    if name is None:
        execution.tee_output()
    loaded = None if name is None else application(deployed_handle(os.environ['RUNPOD_APP_DIR'], name))
    port = int(os.environ.get('PORT', '80'))
    host = listening_host(os.environ)
    shared = Path(os.environ['XDG_CACHE_HOME']) / 'live-source.json' if 'XDG_CACHE_HOME' in os.environ else None
    uvicorn.run(Api(loaded, shared), host=host, port=port, timeout_keep_alive=KEEP_ALIVE_S, log_level='warning')


if __name__ == '__main__':
    main()
