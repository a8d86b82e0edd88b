import runpod


def handler(job):
    name = job["input"].get("name", "you")
    return {"message": f"Hello, {name}!"}


if __name__ == "__main__":
    runpod.serverless.start({"handler": handler})
