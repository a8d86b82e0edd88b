"""Calls of functions whose source comes with the call (FunctionRequest), and their answers."""
import asyncio
import base64
import contextvars
import hashlib
import inspect
import io
import json
import sys
import tempfile
import traceback
import types
from pathlib import Path

from . import packages

LIVE_MODULE = '__runpod_live__'
# Characters of printed text that one answer carries.
MOST_OUTPUT = 1_000_000
# Sources of a dev session that are kept; each edit brings another one.
MOST_MODULES = 16
_modules = {}
_printed = contextvars.ContextVar('printed', default=None)


class Tee(io.TextIOBase):
    """Prints as before, and keeps a copy for the call that prints."""

    def __init__(self, stream):
        self._stream = stream

    def write(self, text):
        """Writes to the real output and to the copy of the present call."""
        printed = _printed.get()
        if printed is not None and printed.tell() < MOST_OUTPUT:
            printed.write(text[: MOST_OUTPUT - printed.tell()])
        return self._stream.write(text)

    def flush(self):
        """Flushes the real output."""
        self._stream.flush()

    def __getattr__(self, name):
        return getattr(self._stream, name)


def tee_output():
    """Begins to keep copies of what calls print."""
    if not isinstance(sys.stdout, Tee):
        sys.stdout = Tee(sys.stdout)


def load_source(source):
    """Runs the source of a module once, from a file, so that ``inspect`` finds it, and returns the module."""
    digest = hashlib.sha256(source.encode()).hexdigest()
    if digest not in _modules:
        path = Path(tempfile.gettempdir()) / f'live_{digest[:32]}.py'
        path.write_text(source, encoding='utf-8')
        module = types.ModuleType(LIVE_MODULE)
        module.__file__ = str(path)
        # The name is not __main__, so that the program of the file does not run. Pickles find their classes by it.
        sys.modules[LIVE_MODULE] = module
        exec(compile(source, str(path), 'exec'), vars(module))
        _modules[digest] = module
    # The latest comes last.
    _modules[digest] = module = _modules.pop(digest)
    if len(_modules) > MOST_MODULES:
        del _modules[next(iter(_modules))]
    sys.modules[LIVE_MODULE] = module
    return module


def prepare(request):
    """Installs what a request asks for. Raises packages.InstallError."""
    if request.get('system_dependencies'):
        packages.provide_system(request['system_dependencies'])
    if request.get('dependencies'):
        packages.add(request['dependencies'])


def wanted_function(request):
    """The function that a request names, in the source that comes with it."""
    name = request['function_name']
    function = getattr(load_source(request['function_code']), name, None)
    if function is None:
        raise LookupError(f'the source has no function {name}')
    # A decorated function is a handle of the SDK.
    return getattr(function, '_fn', function)


def arguments(request):
    """The arguments of a request, as a list and a dictionary."""
    args, kwargs = request.get('args') or [], request.get('kwargs') or {}
    if is_json(request):
        return args, kwargs
    return [unpickled(text) for text in args], {name: unpickled(text) for name, text in kwargs.items()}


def is_json(request):
    """True where arguments and results are plain JSON."""
    return request.get('serialization_format', 'cloudpickle') == 'json'


def unpickled(text):
    """The value of a base64 text of cloudpickle."""
    import cloudpickle

    return cloudpickle.loads(base64.b64decode(text))


def result_member(request, value):
    """The member of an answer that carries a result. Raises TypeError for one that JSON cannot carry."""
    if is_json(request):
        return {'json_result': json.loads(json.dumps(value, allow_nan=False))}
    import cloudpickle

    return {'result': base64.b64encode(cloudpickle.dumps(value)).decode()}


async def answers(request):
    """Runs a request. Yields one answer; of a generator one for each chunk, marked with ``__stream__``."""
    printed = io.StringIO()
    _printed.set(printed)
    try:
        # The installation and the first run of a module may take long; calls of the server go on meanwhile.
        await asyncio.to_thread(prepare, request)
        function = wanted_function(request)
        args, kwargs = arguments(request)
        result = function(*args, **kwargs)
        if inspect.isawaitable(result):
            result = await result
        if inspect.isasyncgen(result) or inspect.isgenerator(result):
            async for chunk in chunks(result):
                yield {'success': True, '__stream__': True, **result_member(request, chunk), **taken(printed)}
        else:
            yield {'success': True, **result_member(request, result), **taken(printed)}
    except Exception:
        yield {'success': False, 'error': traceback.format_exc(), **taken(printed)}
    finally:
        _printed.set(None)


async def chunks(generator):
    """The values of a generator of either kind."""
    if inspect.isasyncgen(generator):
        async for chunk in generator:
            yield chunk
    else:
        for chunk in generator:
            yield chunk


def taken(printed):
    """The text that was printed since the answer before, which it forgets."""
    text = printed.getvalue()
    printed.seek(0)
    printed.truncate()
    return {'stdout': text}


async def whole_answer(request):
    """Runs a request to its one answer; a generator is drained to a list."""
    collected, text = [], ''
    async for answer in answers(request):
        text += answer.get('stdout', '')
        if not answer.get('__stream__'):
            return {**answer, 'stdout': text}
        collected.append(answer)
    if is_json(request):
        value = {'json_result': [answer['json_result'] for answer in collected]}
    else:
        value = result_member(request, [unpickled(answer['result']) for answer in collected])
    return {'success': True, **value, 'stdout': text}
