"""Leads ports of loopback, at which the SDK finds the server, to a socket of the server.

A container reaches nothing else of the machine. The process of this module ends with its container.
"""
import asyncio
import os
import signal
import subprocess
import sys
from urllib.parse import urlsplit

SOCKET = 'RUNYARD_FUNCTION_SOCKET'
ADDRESSES = ('RUNPOD_API_BASE_URL', 'RUNPOD_ENDPOINT_BASE_URL')
# Ports of the worker itself, at all of its addresses.
OWN_PORTS = ('PORT', 'PORT_HEALTH', 'RUNPOD_TASK_PORT')
MOST_CONNECTIONS = 256
READY = b'ready\n'


def wanted_ports(env):
    """The ports of loopback in the addresses of the server, without those that the worker serves."""
    ports = set()
    for address in (urlsplit(env.get(name, '')) for name in ADDRESSES):
        host = address.hostname or ''
        if host in ('localhost', '127.0.0.1') or host.endswith('.localhost'):
            ports.add(address.port or (443 if address.scheme == 'https' else 80))
    return sorted(ports - {int(env[name]) for name in OWN_PORTS if env.get(name, '').isdigit()})


def open_passage(env):
    """Starts the process that leads to the server, where this worker has a socket of it, and waits until it listens."""
    path, ports = env.get(SOCKET, ''), wanted_ports(env)
    if path == '' or not ports:
        return
    command = [sys.executable, '-S', __file__, path, *map(str, ports)]
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    if child.stdout.readline() != READY:
        print('functions of this worker cannot call others: no way to the server could be opened', flush=True)


async def copy(reader, writer):
    """Passes one direction of a connection on, until it ends."""
    try:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except (OSError, RuntimeError):
        writer.close()


async def serve(path, ports):
    """Serves until the process ends."""
    places = asyncio.Semaphore(MOST_CONNECTIONS)

    async def lead(reader, writer):
        async with places:
            try:
                inner_reader, inner_writer = await asyncio.open_unix_connection(path)
            except OSError:
                writer.close()
                return
            await asyncio.gather(copy(reader, inner_writer), copy(inner_reader, writer))
            writer.close()
            inner_writer.close()

    servers = [await asyncio.start_server(lead, '127.0.0.1', port) for port in ports]
    sys.stdout.buffer.write(READY)
    sys.stdout.buffer.flush()
    os.close(sys.stdout.fileno())
    await asyncio.gather(*(server.serve_forever() for server in servers))


if __name__ == '__main__':
    # A worker that ends in peace still calls.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    asyncio.run(serve(sys.argv[1], [int(port) for port in sys.argv[2:]]))
