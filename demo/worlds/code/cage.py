# Copyright (C) The nginx-dsa authors

"""Runs programs in bubblewrap: no network, no files but the system's programs
and a small directory in memory, and bounded processes, memory, output and
time.  Where bubblewrap or its namespaces are missing, nothing runs."""

import functools
import os
import queue
import selectors
import shutil
import signal
import subprocess
import threading
import time
from concurrent.futures import Future


SECONDS = 120
MEMORY = 512 << 20      # of a process
PROCESSES = 24
DISK = 32 << 20         # of a file, and of each directory that can be written
FILES = 64              # that a process has open
OUTPUT = 200_000        # bytes that are kept; more ends the program
NOBODY = 65534


class NoCage(Exception):
    """Programs cannot be isolated on this machine; the text is the reason."""


def bwrap(files, command):
    """Returns the command line that runs a command in /repo, a directory in
    memory with the files, name -> an open file."""

    # the limit of processes is set within the user namespace, because outside
    # of it all processes of the user count; the others are there, too, because
    # Python must not run between fork and exec where there are threads

    limited = ['/usr/bin/prlimit', f'--nproc={PROCESSES}', f'--as={MEMORY}',
               '--core=0', f'--fsize={DISK}', f'--nofile={FILES}', '--']
    copied = [x for name, fd in files.items()
              for x in ('--file', str(fd), f'/repo/{name}')]

    # in a user namespace of its own, a program could mount more memory

    return ['bwrap', '--unshare-all', '--unshare-user', '--disable-userns',
            '--die-with-parent', '--new-session',
            '--ro-bind', '/usr', '/usr', '--symlink', 'usr/bin', '/bin',
            '--symlink', 'usr/lib', '/lib', '--symlink', 'usr/lib64',
            '/lib64', '--proc', '/proc', '--dev', '/dev',
            '--size', str(DISK), '--tmpfs', '/dev/shm', '--remount-ro', '/dev',
            '--size', str(DISK), '--tmpfs', '/tmp',
            '--size', str(DISK), '--tmpfs', '/repo', *copied,
            '--remount-ro', '/', '--chdir', '/repo',
            '--cap-drop', 'ALL', '--clearenv', '--setenv', 'PATH', '/usr/bin',
            '--setenv', 'HOME', '/tmp', '--setenv', 'PYTHONDONTWRITEBYTECODE',
            '1', *limited, *command]


def in_memory(text):
    """Returns an open file in memory with a text.  Half of a surrogate pair,
    which JSON can have, is no UTF-8 there, either."""

    fd = os.memfd_create('cage')

    try:
        with os.fdopen(fd, 'wb', closefd=False) as f:
            f.write(text.encode('utf-8', 'surrogatepass'))
        os.lseek(fd, 0, os.SEEK_SET)
    except BaseException:
        os.close(fd)
        raise

    return fd


class Starter:
    """A thread that starts processes, and lives as long as this program: the
    kernel ends a process in a cage with the thread that started it.  It is a
    daemon, because Python ends those of executors before others that may still
    use a cage."""

    def __init__(self):
        self.begin()
        os.register_at_fork(after_in_child=self.begin)

    def begin(self):
        self.lock = threading.Lock()
        self.jobs = None

    def run(self, what):
        future = Future()

        try:
            with self.lock:
                if self.jobs is None:
                    jobs = queue.SimpleQueue()
                    threading.Thread(target=work, args=(jobs,),
                                     daemon=True).start()
                    self.jobs = jobs

                self.jobs.put((future, what))

            return future.result()

        except BaseException:

            # if a signal's handler raised this, nobody has the process, and
            # what it is started with must stay open until it is there

            if not future.cancel() and future.exception() is None:
                end(future.result())
            raise


def work(jobs):
    while True:
        perform(*jobs.get())


def perform(future, what):
    if not future.set_running_or_notify_cancel():
        return

    try:
        future.set_result(what())
    except BaseException as e:
        future.set_exception(e)


starter = Starter()


def start(files, command, **pipes):
    """Starts a command with these files, name -> text, as another user than
    root.  Raises NoCage if there is no bubblewrap."""

    return starter.run(lambda: spawn(files, command, pipes))


def spawn(files, command, pipes):
    path = found()
    user = {'user': NOBODY, 'group': NOBODY, 'extra_groups': []} \
        if os.getuid() == 0 else {}
    opened = {}

    try:
        for name, text in files.items():
            opened[name] = in_memory(text)

        return subprocess.Popen(
            bwrap(opened, command), env={}, cwd='/',
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

    deadline = time.monotonic() + 10

    # bubblewrap may not have started it yet

    while time.monotonic() < deadline:
        for pid in children(process.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

        try:
            process.wait(timeout=0.2)
            return
        except subprocess.TimeoutExpired:
            pass

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
        (output,), why = collect([p.stdout], seconds)
    finally:
        if why is not None or runs_on(p):
            end(p)
        p.stdout.close()

    text = output.decode(errors='replace')

    if why is not None:
        return None, f'{text[:OUTPUT]}\n[ended: {why}]'

    return p.returncode, text


def run_both(tests, program, seconds=SECONDS):
    """Runs two commands, each in a cage of its own, with a pipe from the
    standard output of each to the standard input of the other.  Nothing else
    joins them, so neither reaches the other's files or processes.

    tests, program   (files, command)

    The end of the first one ends the second.  Returns what both wrote to their
    standard error: two texts.  If they were ended for their time or output,
    the second ends with the reason.
    """
    check()

    to_tests, from_program = os.pipe()
    to_program, from_tests = os.pipe()
    ends = (to_tests, from_program, to_program, from_tests)
    started = []
    outputs, why = [b'', b''], 'reading failed'

    try:
        try:
            started.append(start(*tests, stdin=to_tests, stdout=from_tests,
                                 stderr=subprocess.PIPE))
            started.append(start(*program, stdin=to_program,
                                 stdout=from_program, stderr=subprocess.PIPE))
        finally:
            for fd in ends:
                os.close(fd)

        outputs, why = collect([p.stderr for p in started], seconds)

    finally:
        for p in started:
            end(p)

        if len(started) == 2:
            os.set_blocking(started[1].stderr.fileno(), False)
            outputs[1] += started[1].stderr.read(OUTPUT) or b''

        for p in started:
            p.stderr.close()

    reports, errors = (b.decode(errors='replace')[:OUTPUT] for b in outputs)

    return reports, errors if why is None else f'{errors}\n[ended: {why}]'


def runs_on(process):
    """Waits a moment for a process to end.  Returns whether it still runs."""

    try:
        process.wait(timeout=1)
    except subprocess.TimeoutExpired:
        return True

    return False


def collect(streams, seconds):
    """Reads streams until the first one ends.  Returns (the bytes of each,
    None), or with the reason why reading stopped."""

    deadline = time.monotonic() + seconds
    kept = {s: b'' for s in streams}

    with selectors.DefaultSelector() as selector:
        for s in streams:
            selector.register(s, selectors.EVENT_READ)

        while True:
            left = deadline - time.monotonic()
            ready = selector.select(left) if left > 0 else ()

            if not ready:
                return [*kept.values()], f'more than {seconds} seconds'

            for key, _ in ready:
                s = key.fileobj
                piece = os.read(s.fileno(), 1 << 16)
                kept[s] += piece

                if piece == b'':
                    if s is streams[0]:
                        return [*kept.values()], None
                    selector.unregister(s)

                if len(kept[s]) > OUTPUT:
                    return ([*kept.values()],
                            f'more than {OUTPUT} bytes of output')
