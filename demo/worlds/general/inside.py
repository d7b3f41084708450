# Copyright (C) The nginx-dsa authors

"""The process in which the source of a candidate runs; box.py starts it.

It reads and writes lines of JSON.  The first one that it reads:

    {"source": TEXT, "builtins": [NAME...], "tools": [NAME...]}    a solution
    {"source": TEXT, "builtins": [NAME...], "db": VALUE}           functions

A solution writes {"call": NAME, "arguments": [...]}, reads {"result": VALUE}
or {"error": TEXT}, and at last writes {"answer": VALUE}.  Functions read
{"call": NAME, "arguments": {...}} and write a result or an error.  The database
is in the process of functions only.
"""

import builtins
import json
import resource
import sys


def write(value):
    sys.stdout.write(json.dumps(value) + '\n')
    sys.stdout.flush()


def read():
    line = sys.stdin.readline()

    if line == '':
        raise SystemExit(0)

    return json.loads(line)


def stub(name):
    def call(*arguments):
        write({'call': name, 'arguments': arguments})
        reply = read()

        if 'error' in reply:
            raise ValueError(reply['error'])

        return reply['result']

    return call


def attempt(f):
    """Returns {"result": f()} or {"error": reason}."""

    try:
        return {'result': f()}

    except (Exception, MemoryError) as e:
        return {'error': str(e) if type(e) is ValueError
                else f'{type(e).__name__}: {e}', 'refused': type(e)
                is ValueError}


def main():
    first = read()

    # no more files: with the three that are open, nothing else can be

    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))

    scope = {'__builtins__': {n: getattr(builtins, n)
                              for n in first['builtins']}}

    for name in first.get('tools', ()):
        scope[name] = stub(name)

    made = attempt(lambda: exec(compile(first['source'], 'source', 'exec'),
                                scope))

    if 'db' not in first:
        done = made if 'error' in made else attempt(scope['solve'])
        write({'answer': done['result']} if 'result' in done else done)
        return

    if 'error' in made:
        write(made)
        return

    write({'result': None})

    while True:
        request = read()
        write(attempt(lambda: scope[request['call']](
            first['db'], **request['arguments'])))


if __name__ == '__main__':
    main()
