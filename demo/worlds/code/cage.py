# Copyright (C) The nginx-dsa authors

"""Runs programs in bubblewrap: no network, no files but the system's programs
and a small directory in memory, and bounded processes, memory, output and
time.  Where bubblewrap or its namespaces are missing, nothing runs."""

import functools
import os
import resource
import selectors
import shutil
import signal
import subprocess
import time


SECONDS = 120
MEMORY = 512 << 20      # of a process
PROCESSES = 24
DISK = 32 << 20         # of each directory that can be written
OUTPUT = 200_000        # bytes that are kept; more ends the program
NOBODY = 65534


class NoCage(Exception):
    """Programs cannot be isolated on this machine; the text is the reason."""


def limits():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def bwrap(files, command):
    """Returns the command line that runs a command in /repo, a directory in
    memory with the files, name -> an open file."""

    # the limit of processes is set within the user namespace, because outside
    # of it all processes of the user count

    limited = ['/usr/bin/prlimit', f'--nproc={PROCESSES}', '--']
    copied = [x for name, fd in files.items()
              for x in ('--file', str(fd), f'/repo/{name}')]

    return ['bwrap', '--unshare-all', '--die-with-parent', '--new-session',
            '--ro-bind', '/usr', '/usr', '--symlink', 'usr/bin', '/bin',
            '--symlink', 'usr/lib', '/lib', '--symlink', 'usr/lib64',
            '/lib64', '--proc', '/proc', '--dev', '/dev',
            '--size', str(DISK), '--tmpfs', '/tmp',
            '--size', str(DISK), '--tmpfs', '/repo', *copied,
            '--remount-ro', '/', '--chdir', '/repo',
            '--cap-drop', 'ALL', '--clearenv', '--setenv', 'PATH', '/usr/bin',
            '--setenv', 'HOME', '/tmp', '--setenv', 'PYTHONDONTWRITEBYTECODE',
            '1', *limited, *command]


def in_memory(text):
    """Returns an open file in memory with a text."""

    fd = os.memfd_create('cage')
    with os.fdopen(fd, 'w', encoding='utf-8', closefd=False) as f:
        f.write(text)
    os.lseek(fd, 0, os.SEEK_SET)

    return fd


def start(files, command, **pipes):
    """Starts a command with these files, name -> text, as another user than
    root.  Raises NoCage if there is no bubblewrap."""

    path = found()
    user = {'user': NOBODY, 'group': NOBODY, 'extra_groups': []} \
        if os.getuid() == 0 else {}
    opened = {name: in_memory(text) for name, text in files.items()}

    try:
        return subprocess.Popen(
            bwrap(opened, command), env={}, cwd='/', preexec_fn=limits,
            start_new_session=True, executable=path,
            pass_fds=list(opened.values()), **user, **pipes)

    except OSError as e:
        raise NoCage(f'bubblewrap does not start: {e}') from None

    finally:
        for fd in opened.values():
            os.close(fd)


def found():
    path = shutil.which('bwrap', path='/usr/bin:/usr/local/bin:/bin')

    if path is None:
        raise NoCage('bwrap (the package bubblewrap) is not installed')

    return path


@functools.lru_cache(maxsize=None)
def check():
    """Raises NoCage unless a program can be isolated."""

    p = start({}, ['/usr/bin/true'], stdin=subprocess.DEVNULL,
              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    _, errors = p.communicate()

    if p.returncode != 0:
        raise NoCage('namespaces are refused: '
                     + errors.decode(errors='replace').strip()[-200:])


def end(process):
    """Ends a program and all that it started.  It is the first process of a
    namespace, below bubblewrap's own: when it is killed, the kernel ends the
    others, and bubblewrap waits for that."""

    for pid in children(process.pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def children(pid):
    try:
        with open(f'/proc/{pid}/task/{pid}/children') as f:
            return [int(n) for n in f.read().split()]
    except OSError:
        return []


def run(files, command, seconds=SECONDS):
    """Runs a command in a directory with these files.  Returns (exit status,
    output); the status is None if it was ended for its time or output, and
    the output ends with the reason."""

    check()

    p = start(files, command, stdin=subprocess.DEVNULL,
              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    why = 'reading failed'

    try:
        output, why = collect(p.stdout, seconds)
    finally:
        if why is not None or runs_on(p):
            end(p)
        p.stdout.close()

    text = output.decode(errors='replace')

    if why is not None:
        return None, f'{text[:OUTPUT]}\n[ended: {why}]'

    return p.returncode, text


def runs_on(process):
    """Waits a moment for a process to end.  Returns whether it still runs."""

    try:
        process.wait(timeout=1)
    except subprocess.TimeoutExpired:
        return True

    return False


def collect(stream, seconds):
    """Returns (bytes, None), or with the reason why reading stopped."""

    deadline = time.monotonic() + seconds
    kept = b''

    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)

        while True:
            left = deadline - time.monotonic()

            if left <= 0 or not selector.select(left):
                return kept, f'more than {seconds} seconds'

            piece = os.read(stream.fileno(), 1 << 16)

            if piece == b'':
                return kept, None

            kept += piece

            if len(kept) > OUTPUT:
                return kept, f'more than {OUTPUT} bytes of output'
