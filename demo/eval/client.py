# Copyright (C) The nginx-dsa authors

"""Chat completions over HTTP, with the standard library only."""

import http.client
import json
from urllib.parse import urlsplit


class RunFailed(Exception):
    """The server failed, so the run says nothing about the model."""


class ContextFull(Exception):
    """The messages leave no room in the context for an answer."""


class Client:
    """A connection to a server.

    url      with the API's prefix, http://127.0.0.1:8080/v1
    key      the bearer key; the server keeps a separate cache for each key
    timeout  seconds without a byte
    """

    def __init__(self, url, key='eval', timeout=600):
        parts = urlsplit(url)

        if parts.scheme not in ('http', 'https') or not parts.hostname:
            raise RunFailed(f'{url} is not an http:// or https:// URL')

        kind = http.client.HTTPSConnection if parts.scheme == 'https' \
            else http.client.HTTPConnection
        self.connection = kind(parts.hostname, parts.port, timeout=timeout)
        self.prefix = parts.path.rstrip('/')
        self.headers = {'Authorization': 'Bearer ' + key,
                        'Content-Type': 'application/json'}

    def close(self):
        self.connection.close()

    def model(self):
        """Returns the name of the first model that the server lists."""

        status, answer = self.request('GET', '/models')

        try:
            return answer['data'][0]['id']
        except (LookupError, TypeError):
            raise RunFailed(f'no models, but {status}: {answer}') from None

    def chat(self, request):
        """Returns a completion.  If max_tokens exceeds what the context has
        left, the request is repeated without max_tokens."""

        status, answer = self.request('POST', '/chat/completions', request)

        if over_context(status, answer) and 'max_tokens' in request:
            request = {k: v for k, v in request.items() if k != 'max_tokens'}
            status, answer = self.request('POST', '/chat/completions',
                                          request)

        if over_context(status, answer):
            raise ContextFull

        if status != 200:
            raise RunFailed(f'{status}: {refusal(answer)}')

        return answer

    def request(self, method, path, body=None):
        """Returns (status, the answer's JSON)."""

        if body is not None:
            body = json.dumps(body).encode()

        try:
            self.connection.request(method, self.prefix + path, body,
                                    self.headers)
            response = self.connection.getresponse()
            text = response.read()

        except (OSError, http.client.HTTPException) as e:
            self.connection.close()
            raise RunFailed(f'{method} {path}: {type(e).__name__}: {e}') \
                from None

        try:
            return response.status, json.loads(text)
        except ValueError:
            raise RunFailed(f'{method} {path}: {response.status}, not JSON: '
                            f'{text[:200]}') from None


def refusal(answer):
    """Returns the message of an error."""

    try:
        return answer['error']['message']
    except (LookupError, TypeError):
        return json.dumps(answer)[:200]


def over_context(status, answer):
    return status == 400 and 'maximum context length' in refusal(answer)
