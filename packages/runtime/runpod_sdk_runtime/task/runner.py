"""The server of a task: takes one function with its source, runs it, and keeps its answer until it is collected.

Every call but ``/ping`` needs the token of the task. The worker ends itself when its time is over, or when nobody has
asked for its result for a while.
"""
import asyncio
import hmac
import json
import os
import sys
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from .. import execution
from ..mounts import configure_mounts
from ..passage import open_passage

LARGEST_BODY = 512 * 1024 * 1024
USUAL_IDLE_S = 600
WATCH_S = 15
END = 'mutation($id: String!) { podTerminate(input: {podId: $id}) }'


class Task:
    """The state of the one task of a worker."""

    def __init__(self, token, idle_s=USUAL_IDLE_S):
        self.token = token
        self.idle_s = idle_s
        self.status = 'NONE'
        self.response = None
        self.deadline = None
        self.contact = time.monotonic()
        self._lock = threading.Lock()

    def admits(self, authorization):
        """True for the token of this task; notes the contact."""
        if not self.token or not hmac.compare_digest(authorization.encode(), f'Bearer {self.token}'.encode()):
            return False
        self.contact = time.monotonic()
        return True

    def begin(self, request):
        """Starts a function in the background. False while one runs."""
        with self._lock:
            if self.status == 'RUNNING':
                return False
            self.status, self.response = 'RUNNING', None
        self.limit(request.get('timeout'))
        threading.Thread(target=self._run, args=(request,), daemon=True).start()
        return True

    def limit(self, seconds):
        """Sets the end of the worker, unless an earlier one is set."""
        if seconds is None:
            return
        end = time.monotonic() + float(seconds)
        self.deadline = end if self.deadline is None else min(self.deadline, end)

    def _run(self, request):
        self.response = asyncio.run(execution.whole_answer(request))
        self.status = 'DONE'

    def is_over(self):
        """True when the worker may end: its time is over, or its result is not wanted any more."""
        now = time.monotonic()
        if self.deadline is not None and now >= self.deadline:
            return True
        return self.status != 'RUNNING' and now - self.contact >= self.idle_s


def handler_for(task):
    """The class of requests to a task."""

    class Handler(BaseHTTPRequestHandler):
        """One request."""

        protocol_version = 'HTTP/1.1'

        def log_message(self, format, *args):
            """Prints nothing: the output is that of the function."""

        def do_GET(self):
            """``/ping`` and ``/result``."""
            if self.path == '/ping':
                self._answer(200, {'status': 'ok'})
            elif self._is_admitted():
                if self.path == '/result':
                    self._answer(200, {'status': task.status, 'response': task.response})
                else:
                    self._answer(404, {'error': 'not found'})

        def do_POST(self):
            """``/submit``, ``/timeout`` and ``/execute``."""
            if not self._is_admitted():
                return
            request = self._read()
            if request is None:
                return
            if self.path == '/submit':
                if not task.begin(request):
                    self._answer(409, {'error': 'the task runs already'})
                    return
                timeout = {} if request.get('timeout') is None else {'timeout': request['timeout']}
                self._answer(200, {'status': 'RUNNING', **timeout})
            elif self.path == '/timeout':
                task.limit(request.get('timeout'))
                self._answer(200, {'timeout': request.get('timeout')})
            elif self.path == '/execute':
                self._answer(200, asyncio.run(execution.whole_answer(request)))
            else:
                self._answer(404, {'error': 'not found'})

        def _is_admitted(self):
            admitted = task.admits(self.headers.get('authorization', ''))
            if not admitted:
                # The body stays unread.
                self.close_connection = True
                self._answer(401, {'error': 'the token is not that of this task'})
            return admitted

        def _read(self):
            length = self.headers.get('content-length', '')
            if not length.isdigit() or int(length) > LARGEST_BODY:
                self.close_connection = True
                self._answer(413, {'error': f'the body must have a length of at most {LARGEST_BODY} bytes'})
                return None
            try:
                request = json.loads(self.rfile.read(int(length)))
            except ValueError:
                request = None
            if not isinstance(request, dict):
                self._answer(400, {'error': 'the body is not a JSON object'})
                return None
            return request

        def _answer(self, status, value):
            body = json.dumps(value).encode()
            self.send_response(status)
            self.send_header('content-type', 'application/json')
            self.send_header('content-length', str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler


def ask_for_end(env):
    """Asks the server to end this worker. True once it has agreed."""
    url = f"{env['RUNPOD_API_BASE_URL']}/graphql"
    body = json.dumps({'query': END, 'variables': {'id': env['RUNPOD_POD_ID']}}).encode()
    headers = {'content-type': 'application/json', 'authorization': f"Bearer {env['RUNPOD_API_KEY']}"}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=10) as response:
            answer = json.load(response)
    except (OSError, ValueError):
        return False
    return not answer.get('errors') and (answer.get('data') or {}).get('podTerminate') is None


def watch(task):
    """Ends the process once the task is over and the server knows."""
    while True:
        time.sleep(WATCH_S)
        if task.is_over():
            known = {'RUNPOD_API_BASE_URL', 'RUNPOD_POD_ID', 'RUNPOD_API_KEY'} <= set(os.environ)
            if not known or ask_for_end(os.environ):
                os._exit(0)


def main():
    """Serves until the task is over."""
    token = os.environ.get('RUNPOD_TASK_TOKEN', '')
    if token == '':
        sys.exit('RUNPOD_TASK_TOKEN is missing')
    open_passage(os.environ)
    configure_mounts()
    execution.tee_output()
    task = Task(token, float(os.environ.get('RUNPOD_TASK_IDLE_TIMEOUT', USUAL_IDLE_S)))
    threading.Thread(target=watch, args=(task,), daemon=True).start()
    port = int(os.environ.get('RUNPOD_TASK_PORT', '8080'))
    ThreadingHTTPServer(('0.0.0.0', port), handler_for(task)).serve_forever()


if __name__ == '__main__':
    main()
