"""A worker of a queue: takes jobs with the SDK and runs the function of its resource, or the source of each job."""
import asyncio
import inspect
import os

from .execution import answers, tee_output
from .mounts import configure_mounts
from .resources import deployed_handle, resource_name


def deployed_handler(handle):
    """The SDK's handler for a deployed function, after its ``init``."""
    function = handle._fn
    if handle._init_fn is not None:
        started = handle._init_fn()
        if inspect.isawaitable(started):
            asyncio.new_event_loop().run_until_complete(started)

    def arguments(job):
        return {name: value for name, value in (job.get('input') or {}).items() if name != '__empty'}

    if inspect.isasyncgenfunction(function):

        async def handler(job):
            async for chunk in function(**arguments(job)):
                yield chunk
    elif inspect.isgeneratorfunction(function):

        def handler(job):
            yield from function(**arguments(job))
    else:

        async def handler(job):
            result = function(**arguments(job))
            return await result if inspect.isawaitable(result) else result

    return handler


async def live_handler(job):
    """The SDK's handler for jobs that carry their source."""
    async for answer in answers(job.get('input') or {}):
        yield answer


def main():
    """Serves jobs until the worker is stopped."""
    import runpod

    configure_mounts()
    name = resource_name(os.environ)
    if name is None:
        tee_output()
        handler = live_handler
    else:
        handler = deployed_handler(deployed_handle(os.environ['RUNPOD_APP_DIR'], name))
    config = {'handler': handler, 'return_aggregate_stream': True}
    concurrency = int(os.environ.get('RUNPOD_MAX_CONCURRENCY', '1'))
    if concurrency > 1:
        config['concurrency_modifier'] = lambda _current: concurrency
    runpod.serverless.start(config)


if __name__ == '__main__':
    main()
