# Copyright (C) The nginx-dsa authors

"""Which functions accelerate() has compiled, with a compiler that records
them."""

import unittest
from unittest import mock

from models import needs_torch

try:
    import torch
    from train import ops
except ImportError:
    torch = None


@needs_torch
class Regions(unittest.TestCase):

    def test_some_are_compiled(self):
        compiled, marked = [], []

        def compile(function):
            compiled.append(function)
            return lambda *args: ('compiled', function(*args))

        fake = mock.Mock(compile=compile)
        fake._dynamo.maybe_mark_dynamic = lambda x, dims: marked.append(dims)

        with mock.patch.object(ops.region, 'all', []), \
                mock.patch.object(ops, 'torch', fake), \
                mock.patch.dict('sys.modules', {
                    'torch': fake, 'torch._dynamo': fake._dynamo}):
            one, two = ops.region(lambda x: x + 1), ops.region(lambda x: x + 2)

            self.assertEqual(ops.varying(5, 0), 5)
            self.assertEqual((one(1), two(1), marked), (2, 3, []))

            ops.accelerate((one,))
            self.assertEqual((one(1), one(2)), (('compiled', 2),
                                                ('compiled', 3)))
            self.assertEqual(two(1), 3)
            self.assertEqual(compiled, [one.function])
            self.assertEqual(ops.varying(5, 0), 5)
            self.assertEqual(marked, [(0,)])

            ops.accelerate()
            self.assertEqual(two(1), ('compiled', 3))
            self.assertEqual(compiled, [one.function, two.function])


if __name__ == '__main__':
    unittest.main()
