# Copyright (C) The nginx-dsa authors

"""A chat server whose replies are scripted, in the place of a judge."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class JudgeServer(ThreadingHTTPServer):
    """
    reply   request -> a value for JSON, or a function of the handler, which
            then sends what it wants
    seen    requests, in the order of arrival
    ended   set when the server ends; handlers that block wait for it
    """
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, reply=None):
        super().__init__(('127.0.0.1', 0), Handler)
        self.reply, self.seen = reply, []
        self.ended = threading.Event()
        self.url = f'http://127.0.0.1:{self.server_port}/v1'

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.01,),
                         daemon=True).start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.shutdown()
        self.server_close()


class Handler(BaseHTTPRequestHandler):

    def do_GET(self):
        self.send(200, {'data': [{'id': 'other'}, {'id': 'judge'}]})

    def do_POST(self):
        size = int(self.headers['Content-Length'])
        request = json.loads(self.rfile.read(size))
        self.server.seen.append(request)
        reply = self.server.reply(request)

        if callable(reply):
            reply(self)
        else:
            self.send(200, reply)

    def send(self, status, value):
        text = value if isinstance(value, bytes) \
            else json.dumps(value).encode()
        self.begin(status, len(text))

        try:
            self.wfile.write(text)
        except OSError:                 # the client has read enough
            pass

    def begin(self, status, length):
        self.send_response(status)
        self.send_header('Content-Length', str(length))
        self.end_headers()

    def log_message(self, *_):
        pass


def completion(content, finish='stop', **more):
    """Returns a completion with this content; a value that is no text is sent
    as JSON."""

    if not isinstance(content, str):
        content = json.dumps(content)

    return {'choices': [{'index': 0, 'finish_reason': finish, 'message': {
        'role': 'assistant', 'content': content, **more}}]}
