"""A worker of the torture run: notes each attempt in a file before it works, and answers with the note."""
import asyncio
import json
import os
import uuid

import runpod

JOURNAL = os.environ["TORTURE_JOURNAL"]
AT_ONCE = int(os.environ["TORTURE_AT_ONCE"])


def note(entry):
    """One write of a whole line, which no other worker's comes between."""
    file = os.open(JOURNAL, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, (json.dumps(entry) + "\n").encode())
    finally:
        os.close(file)


async def handler(job):
    given = job["input"]
    attempt = {"job": job["id"], "n": given["n"], "nonce": uuid.uuid4().hex, "worker": os.environ["RUNPOD_POD_ID"]}
    note(attempt)
    await asyncio.sleep(given["ms"] / 1000)
    return attempt


runpod.serverless.start({"handler": handler, "concurrency_modifier": lambda current: AT_ONCE})
