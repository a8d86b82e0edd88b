import platform

import runpod


def handler(job):
    name = (job["input"] or {}).get("name", "world")
    return {"message": f"Hello, {name}!", "python": platform.python_version()}


if __name__ == "__main__":
    runpod.serverless.start({"handler": handler})
