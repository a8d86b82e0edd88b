"""A program that uses a card of the driver library for tests, as fake-worker.ts does, where there is no Node with FFI: in a container. It obeys the
lines of the socket that FAKE_WORKER_SOCKET names: `sum`, `synchronize`, `turns`."""

import ctypes
import json
import os
import socket
import sys

COUNT = 4096
cuda = ctypes.CDLL("libcuda.so.1")
context, at = ctypes.c_void_p(), ctypes.c_uint64()
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(int(sys.argv[1]) << 20)) == 0
assert cuda.cuMemcpyHtoD_v2(at, bytes(index * 31 & 255 for index in range(COUNT)), ctypes.c_size_t(COUNT)) == 0


def checksum():
    data = ctypes.create_string_buffer(COUNT)
    assert cuda.cuMemcpyDtoH_v2(data, at, ctypes.c_size_t(COUNT)) == 0
    return sum(place * byte for place, byte in enumerate(data.raw))


def answer(word):
    if word == "synchronize":
        return {"result": cuda.fakeSynchronizing()}
    return {"turns": cuda.fakeTurns()} if word == "turns" else {"sum": checksum()}


link = socket.socket(socket.AF_UNIX)
link.connect(os.environ["FAKE_WORKER_SOCKET"])
lines = link.makefile("rw")
word = "sum"
while word:
    lines.write(json.dumps(answer(word.strip())) + "\n")
    lines.flush()
    word = lines.readline()
