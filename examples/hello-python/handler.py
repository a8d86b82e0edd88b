import asyncio

import runpod


async def handler(job):
    job_input = job["input"] or {}
    name = job_input.get("name", "world")
    sleep_ms = job_input.get("sleepMs", 0)
    # An async handler can be cancelled while it waits, and leaves the worker free to talk to the platform.
    await asyncio.sleep(sleep_ms / 1000)
    return {"message": f"Hello, {name}!", "sleptMs": sleep_ms}


if __name__ == "__main__":
    runpod.serverless.start({"handler": handler})
