# Copyright (C) The nginx-dsa authors

"""What the tests of training share: batches of rows, and their sizes."""

try:
    import numpy
except ImportError:
    numpy = None


ROWS, LENGTH = 4, 16
PER_STEP = ROWS * LENGTH
FIELDS = {'stage', 'step', 'of', 'positions', 'tokens', 'seconds',
          'tokens_per_second', 'rate', 'loss', 'index_loss', 'draft_loss',
          'gradient', 'index_gradient', 'busiest_expert', 'idlest_expert'}


class Pattern:
    """Batches of rows that count up from random numbers; the last rows are
    shorter.  after(n) is called before batch n."""

    def __init__(self, vocabulary, after=lambda n: None):
        self.vocabulary, self.after = vocabulary, after

    def packed(self, rng, size, length):
        return self.batches(rng, size)

    def batches(self, rng, size):
        n = 0

        while True:
            self.after(n)
            n += 1
            first = numpy.arange(ROWS)[:, None] * 5
            ids = (first + numpy.arange(LENGTH)) % self.vocabulary
            lengths = numpy.array([LENGTH, LENGTH, 10, 6])
            target = (numpy.arange(LENGTH) >= 4) & (
                numpy.arange(LENGTH) < lengths[:, None])

            yield ids.astype(numpy.int64), target, lengths


TOKENS = LENGTH + LENGTH + 10 + 6


def is_indexer(name):
    return '.indexer.' in name
