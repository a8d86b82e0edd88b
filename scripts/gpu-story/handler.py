"""A worker that holds memory of a card and multiplies on it, for scripts/gpu-story.ts. It speaks the worker protocol with Python alone, since a
machine without network has no SDK; with STORY_SDK it starts RunPod's SDK. With the fake driver of the tests it needs no PyTorch."""

import ctypes
import json
import os
import threading
import time
import urllib.request

GIB = 1 << 30
TOKEN = os.environ["RUNPOD_AI_API_KEY"]
WORKER = os.environ["RUNPOD_POD_ID"]


class TorchCard:
    def __init__(self):
        import torch

        self.torch = torch
        self.parts = []
        self.weight = None
        self.turns = 0

    def spin(self):
        def synchronize():
            while True:
                self.torch.cuda.synchronize()
                self.turns += 1
                time.sleep(0.001)

        threading.Thread(target=synchronize, daemon=True).start()

    def spins(self):
        return self.turns

    def hold(self, gib):
        torch = self.torch
        while len(self.parts) < gib:
            generator = torch.Generator(device="cuda").manual_seed(4711 + len(self.parts))
            part = torch.empty(GIB // 8, dtype=torch.int64, device="cuda").random_(generator=generator)
            self.parts.append(part)
        torch.cuda.synchronize()

    def sum(self):
        return sum(int(part.sum()) for part in self.parts) & (2**64 - 1)

    def name(self):
        return self.torch.cuda.get_device_name(0)

    def count(self):
        return self.torch.cuda.device_count()

    def multiply(self, turns):
        torch = self.torch
        if self.weight is None:
            torch.manual_seed(1)
            self.weight = torch.randn(2048, 2048, device="cuda") / 45
        x = torch.ones(2048, 2048, device="cuda")
        for _ in range(turns):
            x = torch.tanh(x @ self.weight) + 0.1
            torch.cuda.synchronize()
        return float(x.double().sum()).hex()


class FakeCard:
    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.parts = []
        context = ctypes.c_void_p()
        assert self.cuda.cuInit(0) == 0
        assert self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
        assert self.cuda.cuCtxSetCurrent(context) == 0

    def enter(self):
        assert self.cuda.cuCtxSetCurrent(ctypes.c_void_p(1)) == 0

    def spin(self):
        assert self.cuda.fakeSynchronizing() == 0

    def spins(self):
        return self.cuda.fakeTurns()

    def hold(self, gib):
        self.enter()
        while len(self.parts) < gib:
            at = ctypes.c_uint64()
            assert self.cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(GIB)) == 0
            data = bytes((7 * index + len(self.parts)) & 255 for index in range(512))
            assert self.cuda.cuMemcpyHtoD_v2(at, data, ctypes.c_size_t(512)) == 0
            self.parts.append(at)

    def sum(self):
        self.enter()
        total = 0
        for part in self.parts:
            data = ctypes.create_string_buffer(512)
            assert self.cuda.cuMemcpyDtoH_v2(data, part, ctypes.c_size_t(512)) == 0
            total += sum(data.raw)
        return total

    def name(self):
        return "fake"

    def count(self):
        count = ctypes.c_int()
        assert self.cuda.cuDeviceGetCount(ctypes.byref(count)) == 0
        return count.value

    def multiply(self, turns):
        value = 1
        for turn in range(turns):
            assert self.cuda.fakeWork(1) == 0
            value = (value * 33 + turn) & 0xFFFFFFFF
        return float(value).hex()


card = None


def handle(job):
    global card
    begun = time.monotonic()
    ask = job["input"]
    if card is None:
        card = FakeCard() if os.environ.get("FAKE_CUDA_DIR") else TorchCard()
    loaded = time.monotonic()
    card.hold(ask.get("gib", 0))
    if ask.get("spin"):
        card.spin()
    value = card.multiply(ask.get("turns", 1))
    return {
        "pid": os.getpid(),
        "sum": str(card.sum()),
        "value": value,
        "heldGib": len(card.parts),
        "gpu": card.name(),
        "gpus": card.count(),
        "spins": card.spins(),
        "shareMb": os.environ.get("RUNYARD_GPU_MEMORY_MB"),
        "visible": os.environ.get("CUDA_VISIBLE_DEVICES"),
        "loadMs": round(1000 * (loaded - begun)),
        "tookMs": round(1000 * (time.monotonic() - begun)),
    }


opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
current = []


def call(url, data=None, timeout=40):
    headers = {"Authorization": TOKEN, "Content-Type": "application/json"}
    request = urllib.request.Request(url, data=data, headers=headers)
    with opener.open(request, timeout=timeout) as response:
        return response.status, response.read()


def ping():
    while True:
        try:
            call(os.environ["RUNPOD_WEBHOOK_PING"].replace("$RUNPOD_POD_ID", WORKER) + f"&job_id={','.join(current)}", timeout=10)
        except OSError:
            pass
        time.sleep(10)


def work():
    threading.Thread(target=ping, daemon=True).start()
    take = os.environ["RUNPOD_WEBHOOK_GET_JOB"].replace("$ID", WORKER) + "&job_in_progress=0"
    post = os.environ["RUNPOD_WEBHOOK_POST_OUTPUT"].replace("$RUNPOD_POD_ID", WORKER)
    while True:
        try:
            status, body = call(take)
        except OSError:
            time.sleep(1)
            continue
        if status != 200 or not body:
            continue
        job = json.loads(body)
        current.append(job["id"])
        try:
            answer = {"output": handle(job)}
        except Exception as error:  # the job fails, the worker continues
            answer = {"error": f"{type(error).__name__}: {error}"}
        call(post.replace("$ID", job["id"]) + "&isStream=false", json.dumps(answer).encode())
        current.clear()


if os.environ.get("STORY_SDK"):
    import runpod

    runpod.serverless.start({"handler": handle})
else:
    work()
