# Copyright (C) The nginx-dsa authors

"""Rollouts of tasks from the running server, with what a trainer needs of each
sampled token (docs/api/rollout-rows.md): its id, the log-probability with which
it was drawn, the ids that it was drawn from, and the experts of each position.

The conversation is that of eval.converse, and the task's own check is the
verifier.  What the model wrote in it is a Trajectory of Sequences.  A request
of a conversation mostly begins with the ids of the one before it and of its
answer; then both are one sequence, and experts of positions that the server
found in its prefix cache are those of the request that computed them.
Where the ids differ, because reasoning was dropped before a message of the
user or because a text is not encoded as it was sampled, a sequence begins
anew.
"""

import base64
import math
import struct
import time
from dataclasses import dataclass, field
from typing import List, Optional

import numpy

from eval.client import Client
from eval.converse import converse
from eval.run import in_parallel


ROW = struct.Struct('<IHHIII')          # length, type, form, position, n,
                                        # version
SAMPLED = struct.Struct('<If')          # id, log p
PROMPT, EXPERTS, SAMPLE = 1, 2, 3
NONE, ALL, GAPS, BITS = range(4)


class BadRows(ValueError):
    """The rows are not what docs/api/rollout-rows.md describes."""


@dataclass
class Rows:
    """The rows of an answer.

    prompt    ids, none if they were not requested
    first     position of the first sample
    ids, old  of the samples, their log-probabilities
    kept      of each sample the rising ids that it was drawn from, None: all
    experts   of each row the first position and uint8 or uint16 [n, layers, k]
    versions  of the weights
    """
    prompt: List[int] = field(default_factory=list)
    first: int = 0
    ids: List[int] = field(default_factory=list)
    old: List[float] = field(default_factory=list)
    kept: list = field(default_factory=list)
    experts: list = field(default_factory=list)
    versions: set = field(default_factory=set)


def read_rows(data, vocabulary):
    """Returns the Rows of bytes; ids are below vocabulary.  They begin with
    the prompt, if it was requested."""

    rows, at = Rows(), 0

    while at < len(data):
        if len(data) - at < ROW.size:
            raise BadRows(f'{len(data) - at} bytes at {at}; expected a row')

        length, kind, form, position, n, version = ROW.unpack_from(data, at)

        if length < ROW.size or length % 4 or length > len(data) - at:
            raise BadRows(f'a row of {length} bytes at {at}; expected a '
                          f'multiple of 4 from {ROW.size} to '
                          f'{len(data) - at}')

        body = data[at + ROW.size:at + length]
        at += length

        if kind == PROMPT:
            read_prompt(rows, body, position, n, vocabulary)
        elif kind == EXPERTS:
            read_experts(rows, body, form, position, n)
            rows.versions.add(version)
        elif kind == SAMPLE:
            read_sample(rows, body, form, position, n, vocabulary)
            rows.versions.add(version)
        else:
            raise BadRows(f'a row of type {kind}; expected 1 to 3')

    return rows


def read_prompt(rows, body, position, n, vocabulary):
    if position != len(rows.prompt) or len(body) != 4 * n:
        raise BadRows(f'{n} ids of the prompt from {position} in {len(body)} '
                      f'bytes; expected ids from {len(rows.prompt)}')

    rows.prompt += known(numpy.frombuffer(body, '<u4'), vocabulary).tolist()


def known(ids, vocabulary):
    if len(ids) and ids.max() >= vocabulary:
        raise BadRows(f'the id {ids.max()}; expected less than {vocabulary}')

    return ids


def read_experts(rows, body, form, position, n):
    if form not in (1, 2) or len(body) < 4:
        raise BadRows(f'experts of form {form}; expected 1 or 2')

    layers, k = struct.unpack_from('<HH', body)
    size = n * layers * k

    if size == 0 or 4 + (size * form + 3) // 4 * 4 != len(body):
        raise BadRows(f'{n} x {layers} x {k} experts in {len(body)} bytes')

    values = numpy.frombuffer(body, '<u1' if form == 1 else '<u2', size, 4)
    values = values.reshape(n, layers, k)

    if rows.experts and rows.experts[0][1].shape[1:] != values.shape[1:]:
        raise BadRows(f'{layers} x {k} experts after '
                      '{} x {}'.format(*rows.experts[0][1].shape[1:]))

    rows.experts.append((position, values))


def read_sample(rows, body, form, position, n, vocabulary):
    if len(body) < 8:
        raise BadRows(f'a sample of {len(body)} bytes; expected 8 or more')

    number, old = SAMPLED.unpack_from(body)

    if number >= vocabulary:
        raise BadRows(f'the id {number}; expected less than {vocabulary}')

    if not rows.ids:
        rows.first = position

    if position != rows.first + len(rows.ids) \
            or rows.prompt and rows.first != len(rows.prompt):
        raise BadRows(f'a sample at {position} after {len(rows.prompt)} ids '
                      f'of the prompt and {len(rows.ids)} samples')

    if not -math.inf < old <= 1e-3:
        raise BadRows(f'log p is {old}; expected a finite number, at most 0')

    rows.ids.append(number)
    rows.old.append(old)
    rows.kept.append(read_kept(body[8:], form, n, number, vocabulary))


def read_kept(body, form, n, number, vocabulary):
    """Returns the ids of a mask, or None for all ids.  There is one for each
    sampled token, mostly of one or two ids, so lists are faster than
    arrays."""

    if form in (NONE, ALL):
        return None

    if form == BITS:
        found = numpy.flatnonzero(numpy.unpackbits(
            numpy.frombuffer(body, numpy.uint8), bitorder='little')).tolist()
    elif form == GAPS:
        found = rising(body, n)
    else:
        raise BadRows(f'a sample of form {form}; expected 0 to 3')

    if len(found) != n or number not in found or found[-1] >= vocabulary:
        raise BadRows(f'a mask of {len(found)} ids; expected {n} below '
                      f'{vocabulary}, and {number} among them')

    return found


def rising(body, n):
    """Returns n rising ids of which the first one and the differences are
    LEB128 numbers, or fewer if these end."""

    found, last, value, shift = [], -1, 0, 0

    for byte in body:
        if len(found) == n:
            break

        value |= (byte & 0x7f) << shift
        shift += 7

        if not byte & 0x80:
            last, before = value + max(last, 0), last
            value, shift = 0, 0

            if last <= before:
                break

            found.append(last)

    return found


# ------------------------------------------------------------- trajectories


@dataclass
class Sequence:
    """ids, of which sampled [n] says which the model wrote; old, kept: of
    those, in order; experts: int32 [n, layers, k], -1 where they are not
    known, or None."""

    ids: List[int]
    sampled: List[bool]
    old: List[float] = field(default_factory=list)
    kept: list = field(default_factory=list)
    experts: Optional[numpy.ndarray] = None

    def add(self, rows):
        """Appends a request that continues this sequence, with its answer."""

        more = rows.prompt[len(self.ids):]
        self.ids += more + rows.ids
        self.sampled += [False] * len(more) + [True] * len(rows.ids)
        self.old += rows.old
        self.kept += rows.kept

        self.experts = joined(self.experts, rows.experts, len(self.ids))


def joined(known, rows, n):
    """Returns the experts of n ids: known, those of the first ids or None, and
    those of the rows of a request that continues them.  The first computation
    of a position is the one it was sampled with."""

    if not rows and known is None:
        return None

    shape = (known if known is not None else rows[0][1]).shape[1:]
    found = numpy.full((n, *shape), -1, numpy.int32)

    for position, values in rows:
        if values.shape[1:] != shape:
            raise BadRows('{} x {} experts after {} x {}'.format(
                *values.shape[1:], *shape))

        found[position:position + len(values)] = values[:max(n - position, 0)]

    if known is not None:
        old = known[:, 0, 0] >= 0
        found[:len(known)][old] = known[old]

    return found


@dataclass
class Trajectory:
    """
    family, seed  the task
    reward        of its verifier: 1 right, 0 wrong
    why           the verifier's reason
    sequences     what the model wrote
    versions      of the weights that computed it
    differs       requests of a turn that did not begin with the ids of the
                  request before and its answer, as they were sampled
    requests      all of them
    cut           1: a message reached max_tokens
    users         messages of the user in the last request
    written       the messages of the model, as the API returned them
    kl, entropy   means over the tokens before the updates by it, from
                  learn.Learner.agreement
    """
    family: str
    seed: str
    reward: float = 0.0
    why: str = None
    sequences: List[Sequence] = field(default_factory=list)
    versions: set = field(default_factory=set)
    differs: int = 0
    requests: int = 0
    cut: int = 0
    users: int = 0
    written: List[dict] = field(default_factory=list)
    kl: float = None
    entropy: float = None

    @property
    def tokens(self):
        return sum(len(s.old) for s in self.sequences)

    def add(self, rows, users):
        """Adds a request and its answer; users: how many messages of the user
        the request has."""

        self.requests += 1
        self.versions |= rows.versions
        last = self.sequences[-1] if self.sequences else None

        if last is not None and rows.prompt[:len(last.ids)] == last.ids:
            last.add(rows)
            self.users = users
            return

        if last is not None and users == self.users:
            self.differs += 1

        self.users = users
        self.sequences.append(Sequence([], []))
        self.sequences[-1].add(rows)


@dataclass(frozen=True)
class Sampling:
    """How rollouts are drawn.

    vocabulary   ids of the tokenizer are below it
    temperature, top_p, max_tokens
                 of each message
    """
    url: str
    model: str
    mode: str
    vocabulary: int
    temperature: float = 1.0
    top_p: float = 0.95
    max_tokens: int = 512


def have(family, name, make, sampling, seed, key):
    """Has a task's conversation and returns its Trajectory.  make: as below;
    seed: of the noise; key: conversations with the same key share a prefix
    cache."""

    task = make(family, name)
    client = Client(sampling.url, key)
    out = Trajectory(family, name)

    def chat(request):
        users = sum(m['role'] == 'user' for m in request['messages'])
        completion = client.chat({
            **request, 'model': sampling.model, 'seed': seed,
            'temperature': sampling.temperature, 'top_p': sampling.top_p,
            'max_tokens': sampling.max_tokens,
            'rollout': {'mask': True, 'experts': True, 'prompt': True}})
        choice = completion['choices'][0]
        rows = read_rows(base64.b64decode(choice['rollout']['rows']),
                         sampling.vocabulary)
        out.add(rows, users)
        out.written.append(choice['message'])
        out.cut |= choice['finish_reason'] == 'length'

        return completion

    try:
        outcome = converse(task, sampling.mode, chat)
    finally:
        client.close()

    out.why = outcome.why
    out.reward = float(outcome.why is None)

    return out


def rollouts(tasks, make, sampling, group, first, concurrency, nonce):
    """Has each of tasks, a list of (family, seed's name), group times, many at
    the same time.  make(family, name) returns the Task; it is called for each
    conversation, because the tools of a task may have state.  first: the seed
    of the noise of the first one.  nonce: makes the keys of this call unlike
    those of others, so that each conversation has a prefix cache of its own.

    Returns a list of groups of Trajectories, and the seconds that it took.
    """
    begin = time.monotonic()

    def job(family, name, number, key):
        return lambda: have(family, name, make, sampling, number, key)

    each = in_parallel(
        [job(family, name, first + i * group + g, f'{nonce}-{i}-{g}')
         for i, (family, name) in enumerate(tasks) for g in range(group)],
        concurrency)

    return ([each[at:at + group] for at in range(0, len(each), group)],
            time.monotonic() - begin)
