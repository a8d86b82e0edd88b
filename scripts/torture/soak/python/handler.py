"""A worker of the soak on RunPod's SDK: records each attempt in a file before it runs, and returns or yields the record."""
import asyncio
import json
import os
import uuid

import runpod

JOURNAL = os.environ["TORTURE_JOURNAL"]
AT_ONCE = int(os.environ["TORTURE_AT_ONCE"])
STREAMS = os.environ["TORTURE_STREAMS"] == "yes"


def record(job):
    """Writes a whole line at once, so that lines of workers do not mix."""
    attempt = {"job": job["id"], "n": job["input"]["n"], "nonce": uuid.uuid4().hex, "worker": os.environ["RUNPOD_POD_ID"]}
    file = os.open(JOURNAL, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, (json.dumps(attempt) + "\n").encode())
    finally:
        os.close(file)
    return attempt


async def whole(job):
    given = job["input"]
    attempt = record(job)
    await asyncio.sleep(given["ms"] / 1000)
    if given.get("fails"):
        raise ValueError(f"job {given['n']} fails as it should")
    return attempt


async def in_chunks(job):
    given = job["input"]
    attempt = record(job)
    for index in range(given["chunks"]):
        await asyncio.sleep(given["ms"] / 1000 / given["chunks"])
        yield {**attempt, "index": index}


runpod.serverless.start(
    {
        "handler": in_chunks if STREAMS else whole,
        "return_aggregate_stream": True,
        "concurrency_modifier": lambda current: AT_ONCE,
    }
)
