"""The way from loopback of a container to the socket of the server."""
import socket
import subprocess
import sys
import threading
import unittest

from runpod_sdk_runtime import passage

from .support import WithFolder


class Passages(WithFolder):
    """Connections to a port, which arrive at a socket."""

    def test_ports_are_those_of_loopback_in_the_addresses_of_the_server(self):
        env = {
            'RUNPOD_API_BASE_URL': 'https://localhost:8443',
            'RUNPOD_ENDPOINT_BASE_URL': 'https://lb.localhost:8444/v2',
        }
        self.assertEqual(passage.wanted_ports(env), [8443, 8444])
        self.assertEqual(passage.wanted_ports({**env, 'PORT': '8444'}), [8443], 'the worker serves it itself')
        self.assertEqual(passage.wanted_ports({'RUNPOD_API_BASE_URL': 'https://box.lan:8443'}), [])
        self.assertEqual(passage.wanted_ports({}), [])

    def test_a_connection_is_led_to_the_socket_and_back(self):
        path = str(self.folder / 'server.sock')
        server = socket.socket(socket.AF_UNIX)
        self.addCleanup(server.close)
        server.bind(path)
        server.listen()

        def answer():
            connection, _ = server.accept()
            with connection:
                text = b''
                while part := connection.recv(1024):
                    text += part
                connection.sendall(text.upper())

        threading.Thread(target=answer, daemon=True).start()
        with socket.socket() as probe:
            probe.bind(('127.0.0.1', 0))
            port = probe.getsockname()[1]
        child = subprocess.Popen([sys.executable, passage.__file__, path, str(port)], stdout=subprocess.PIPE)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        self.addCleanup(child.stdout.close)
        self.assertEqual(child.stdout.readline(), passage.READY)
        with socket.create_connection(('127.0.0.1', port), timeout=10) as connection:
            connection.sendall(b'said by a function')
            connection.shutdown(socket.SHUT_WR)
            self.assertEqual(connection.makefile('rb').read(), b'SAID BY A FUNCTION')
