"""A worker of the torture run: records each attempt in a file before it runs, and returns the record."""
import asyncio
import json
import os
import uuid

import runpod

JOURNAL = os.environ["TORTURE_JOURNAL"]
AT_ONCE = int(os.environ["TORTURE_AT_ONCE"])


def record(entry):
    """Writes a whole line at once, so that lines of workers do not mix."""
    file = os.open(JOURNAL, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, (json.dumps(entry) + "\n").encode())
    finally:
        os.close(file)


async def handler(job):
    given = job["input"]
    who = {"worker": os.environ["RUNPOD_POD_ID"], "release": os.environ["TORTURE_RELEASE"]}
    attempt = {"job": job["id"], "n": given["n"], "nonce": uuid.uuid4().hex, **who}
    record(attempt)
    await asyncio.sleep(given["ms"] / 1000)
    return attempt


runpod.serverless.start({"handler": handler, "concurrency_modifier": lambda current: AT_ONCE})
