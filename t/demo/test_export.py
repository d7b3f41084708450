# Copyright (C) The nginx-dsa authors

"""An exported checkpoint: its FP8 numbers, its files, and that the engine
computes the same with it as the training code."""

import json
import math
import os
import struct
import subprocess
import tempfile
import unittest
from unittest import mock

from models import (ROOT, batch, config, distances, make, needs_torch,
                    quantile)

try:
    import numpy
    import torch
    import torch.nn.functional as F
    from train import attention, export, fp8
    from train import model as model_file
    from train.model import Model
except ImportError:
    torch = None


BUILD = os.path.join(ROOT, os.environ.get('DSA_BUILD', 'build'))
DSA = os.path.join(BUILD, 'dsa')
TOKENIZER = os.path.join(BUILD, 'model/tokenizer.json')


def e4m3_of(code):
    """Returns the value of a byte, by the definition of the format."""

    e, m = code >> 3 & 15, code & 7
    x = (1 + m / 8) * 2.0 ** (e - 7) if e else m / 8 * 2.0 ** -6

    return -x if code & 0x80 else x


@needs_torch
class Fp8(unittest.TestCase):

    def test_every_number_is_the_nearest(self):
        values = numpy.array([e4m3_of(c) for c in range(127)])

        # all values, all midpoints, and the numbers next to both

        middle = (values[1:] + values[:-1]) / 2
        x = numpy.concatenate([values, middle, middle * (1 + 1e-6),
                               middle * (1 - 1e-6), [448.5, 464, 1e9]])
        x = numpy.concatenate([x, -x]).astype(numpy.float32)
        got = fp8.e4m3(torch.from_numpy(x)).numpy()

        for v, r in zip(x, got):
            away = numpy.abs(values - min(abs(float(v)), 448))
            best = numpy.flatnonzero(away == away.min())
            code = [c for c in best if len(best) == 1 or c % 2 == 0][0]
            self.assertEqual(r, math.copysign(values[code], v), v)

    def test_codes(self):
        codes = torch.tensor([c for c in range(256) if c & 0x7f != 0x7f])
        x = torch.tensor([e4m3_of(int(c)) for c in codes])

        self.assertTrue(torch.equal(fp8.e4m3(x), x))
        self.assertTrue(torch.equal(fp8.e4m3_code(x).long(), codes))

    def test_scale_is_the_power_of_two_not_below(self):
        for amax in (1e-4, 0.2, 1.0, 448.0, 448.001, 896.0, 3e6):
            s = float(fp8.scale_of(torch.tensor(amax)))
            least = max(amax, 1e-4) / 448
            self.assertEqual(s, 2.0 ** round(math.log2(s)))
            self.assertGreaterEqual(s * (1 + 1e-7), least)
            self.assertLess(s / 2, least)

        self.assertEqual(fp8.scale_of(torch.tensor(0.0)),
                         fp8.scale_of(torch.tensor(1e-4)))

    def test_scale_is_exact(self):
        """Numbers for which an inexact quotient by 448 would give a wrong
        scale."""

        for e in range(-10, 40):
            amax = torch.tensor(448 * 2.0 ** e)
            above = torch.nextafter(amax, 2 * amax)
            self.assertEqual(float(fp8.scale_of(amax)), 2.0 ** e)
            self.assertEqual(float(fp8.scale_of(above)), 2.0 ** (e + 1))
            self.assertEqual(float(fp8.inverse(fp8.scale_of(amax))),
                             2.0 ** -e)

    def test_bf16(self):
        torch.manual_seed(3)
        x = torch.randn(4096) * torch.randn(4096).exp()
        low = x.bfloat16().float()
        up = low * (1 + 2.0 ** -8)      # midpoints, some of them ties
        x = torch.cat([x, low, up, -up, torch.zeros(1)]).requires_grad_()

        self.assertTrue(torch.equal(fp8.bf16(x.detach()),
                                    x.detach().bfloat16().float()))

        y = fp8.narrow(x, torch.bfloat16)
        self.assertTrue(torch.equal(y, x.bfloat16()))
        y.backward(y.detach())
        self.assertTrue(torch.equal(x.grad, y.detach().float()))
        self.assertIs(fp8.narrow(x, torch.float32), x)

    def test_groups_and_blocks(self):
        torch.manual_seed(2)
        x = torch.randn(3, 256) * torch.tensor([1.0, 100.0, 1e-3])[:, None]
        x[0, 128:] *= 1000

        y = fp8.quantize(x)
        self.assertLess(float(((y - x).abs() / x.abs().clamp(min=1e-2)
                               ).max()), 0.0626)
        self.assertTrue(torch.equal(fp8.quantize(y), y))

        # the rounding error of a block depends only on its own largest number

        w = torch.randn(192, 384)
        w[:128, :128] *= 2.0 ** 20
        values, scale = fp8.weight_blocks(w)
        again = fp8.quantize_weight(w)

        self.assertEqual(tuple(scale.shape), (2, 3))
        self.assertGreater(float(scale[0, 0]), 1000 * float(scale[1, 0]))
        self.assertEqual(float(values.abs().max() <= 448), 1)
        self.assertLess(float((again - w)[128:].abs().max()), 0.2)
        self.assertTrue(torch.equal(fp8.quantize_weight(again), again))

        stack = torch.stack([w, 3 * w])
        self.assertTrue(torch.equal(fp8.quantize_weight(stack)[1],
                                    fp8.quantize_weight(3 * w)))

    def test_gradients_pass(self):
        for f in (fp8.quantize, fp8.quantize_weight):
            x = torch.randn(4, 128, requires_grad=True)
            g = torch.randn(4, 128)
            f(x).backward(g)
            self.assertTrue(torch.equal(x.grad, g))

    def test_hadamard(self):
        h = fp8.hadamard(8)
        self.assertTrue(torch.equal(h @ h.t(), 8 * torch.eye(8)))

        for i in range(8):
            for j in range(8):
                self.assertEqual(float(h[i, j]),
                                 (-1) ** bin(i & j).count('1'))


def write_tokens(path, ids):
    data = ids.int().numpy().tobytes()
    head = json.dumps({'tokens': {
        'dtype': 'I32', 'shape': [len(ids)],
        'data_offsets': [0, len(data)]}}).encode()
    head += b' ' * (-len(head) % 8)

    with open(path, 'wb') as f:
        f.write(struct.pack('<Q', len(head)) + head + data)


def read_tensors(path):
    """Returns name -> tensor, as stored: FP8 as bytes, BF16 as 16-bit
    integers."""

    kinds = {'F32': numpy.float32, 'I32': numpy.int32, 'BF16': numpy.uint16,
             'F8_E4M3': numpy.uint8}

    with open(path, 'rb') as f:
        data = f.read()

    n = struct.unpack('<Q', data[:8])[0]
    out = {}

    for name, t in json.loads(data[8:8 + n]).items():
        if name != '__metadata__':
            a, b = t['data_offsets']
            out[name] = numpy.frombuffer(
                data[8 + n + a:8 + n + b],
                kinds[t['dtype']]).reshape(t['shape'])

    return out


def dequantized(directory):
    """Returns the weights of an exported model in float32, decoded by the
    definitions of the formats."""

    table = numpy.array([e4m3_of(c) for c in range(256)], numpy.float32)
    files = [f for f in os.listdir(directory) if f.endswith('.safetensors')]
    raw, out = {}, {}

    for name in files:
        raw.update(read_tensors(os.path.join(directory, name)))

    for name, x in raw.items():
        if x.dtype == numpy.uint8:
            rows, cols = x.shape
            s = raw[name + '_scale_inv'].repeat(128, 0).repeat(128, 1)
            x = table[x] * s[:rows, :cols]
        elif x.dtype == numpy.uint16:
            x = (x.astype(numpy.uint32) << 16).view(numpy.float32)
        if not name.endswith('_scale_inv'):
            out[name] = torch.from_numpy(x.copy())

    return out


def load(c, weights):
    """Returns a Model with the tensors of an exported one."""

    model = Model(c)
    state = model.state_dict()

    for name in state:
        if '.experts.' in name:
            state[name] = torch.stack([
                weights.pop(name.replace('.experts.', f'.experts.{e}.'))
                for e in range(c['n_routed_experts'])])
        else:
            state[name] = weights.pop(name)

    assert not weights, weights.keys()
    model.load_state_dict(state)

    return model


@needs_torch
@unittest.skipUnless(os.path.exists(DSA), 'no build/dsa here')
class Engine(unittest.TestCase):
    """Engine and training code compute the same logits from a checkpoint.  The
    prompt has 700 tokens: from the 129th on, attention is limited to the
    tokens that the indexer selected."""

    T = 700

    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        path = cls.dir.name
        cls.config = config()
        cls.model = make(cls.config, 3)
        cls.ids, cls.valid = batch(cls.config, 1, cls.T, 3)
        checkpoint = os.path.join(path, 'it.pt')
        cls.exported = os.path.join(path, 'model')

        torch.save({'config': cls.config, 'model': cls.model.state_dict()},
                   checkpoint)

        with mock.patch('sys.argv', ['export', checkpoint, cls.exported,
                                     '--tokenizer', TOKENIZER]), \
                mock.patch('builtins.print'):
            export.main()

        cls.tokens = os.path.join(path, 'tokens.safetensors')
        write_tokens(cls.tokens, cls.ids[0])

    @classmethod
    def tearDownClass(cls):
        cls.dir.cleanup()

    def engine(self, *args):
        out = os.path.join(self.dir.name, 'out.safetensors')
        subprocess.run([DSA, 'logits', '--model', self.exported, '--tokens',
                        self.tokens, '--out', out, '--trace', *args],
                       check=True)

        return {name: torch.from_numpy(x.copy())
                for name, x in read_tensors(out).items()}

    def run_model(self, model, how, precision):
        """Returns logits [T,V], streams after each layer, selections."""

        stream, chosen = [], []
        finish, select = model_file.finish, attention.select

        def told_finish(*args):
            out = finish(*args)
            stream.append(out[0])
            return out

        def told_select(*args):
            out = select(*args)
            chosen.append(out[0])
            return out

        with torch.no_grad(), \
                mock.patch.object(model_file, 'finish', told_finish), \
                mock.patch.object(attention, 'select', told_select):
            out = model(self.ids, self.valid, how, precision)
            logits = model.logits(out.hidden, precision)[0]

        seen = torch.ones(self.T, self.T, dtype=torch.bool).tril()

        return logits, stream, [c & seen for c in chosen]

    def each_layer(self, out):
        """Yields the name and the rows of the stream after each layer, if what
        it reads is the engine's.  The draft layer has no row 0."""

        m = self.model
        layers = [f'hidden.{n}' for n in range(m.n_layers)]
        names = [None] + layers[:-1] + ['draft_in.1']

        for layer, before, name in zip(m.model.layers, names,
                                       layers + ['draft_out.1']):
            first = int(name == 'draft_out.1')
            valid = self.valid[:, first:]
            rows = m.rows(valid, 'sparse', 'served', False, valid)._replace(
                cos=m.cos[first:self.T], sin=m.sin[first:self.T])

            with torch.no_grad():
                h = out[before] if before else m.embedded(self.ids, rows)
                yield name, m.through(layer, h, rows, [], [])

    def differing(self, out, chosen):
        """Returns for each layer the rows with another selection."""

        rows = []

        for n, mine in enumerate(chosen):
            theirs = torch.zeros(self.T, self.T + 1, dtype=torch.bool)
            pick = out[f'topk.{n}'].long()
            theirs.scatter_(1, torch.where(pick < 0, self.T, pick), True)
            rows.append((theirs[:, :-1] != mine).any(1).nonzero()[:, 0])

        return rows

    def test_files(self):
        self.assertEqual(sorted(os.listdir(self.exported)), [
            'config.json', 'generation_config.json',
            'model-00001-of-000002.safetensors',
            'model-00002-of-000002.safetensors',
            'model.safetensors.index.json', 'tokenizer.json'])

        size = sum(os.path.getsize(os.path.join(self.exported, f))
                   for f in os.listdir(self.exported))
        self.assertLess(size, 18e6)

        with open(os.path.join(self.exported, 'config.json')) as f:
            self.assertEqual(json.load(f), self.config)

    def test_too_large_a_model_is_refused(self):
        path = os.path.join(self.dir.name, 'large')

        with mock.patch.object(export, 'LIMIT', 15 * 1000 * 1000), \
                self.assertRaisesRegex(SystemExit, 'limit is 15000000'):
            export.export(self.config, self.model.state_dict(), path)

        self.assertFalse(os.path.exists(os.path.join(path, 'config.json')))

    def test_exact(self):
        out = self.engine('--exact')
        model = load(self.config, dequantized(self.exported))
        logits, _, chosen = self.run_model(model, 'sparse', 'float')

        self.assertEqual(len(chosen), self.config['num_hidden_layers'])

        # float32 sums depend on their order, so scores that are closer than
        # this may be in another order

        for n, rows in enumerate(self.differing(out, chosen)):
            for row in rows.tolist():
                self.assertLess(float(out[f'gap.{n}'][row]), 1e-4)
            self.assertLess(len(rows), 7)

        d = distances(logits, out['logits'])
        self.assertLess(quantile(d, 0.5), 1e-5)
        self.assertLess(quantile(d, 0.9), 1e-4)

        # without the selection the logits would differ

        dense, _, _ = self.run_model(model, 'dense', 'float')
        self.assertGreater(quantile(distances(dense, out['logits']), 0.5),
                           0.1)

    def test_drafts(self):
        """The first step of the draft layer, from the 129th row on with its
        own selection.  Its weights are exported without copies of embedding
        and head."""

        weights = dequantized(self.exported)
        layer = f'model.layers.{self.config["num_hidden_layers"]}.'
        names = {n[len(layer):] for n in weights if n.startswith(layer)}

        self.assertLessEqual({'enorm.weight', 'hnorm.weight',
                              'eh_proj.weight', 'shared_head.norm.weight',
                              'self_attn.indexer.wk.weight'}, names)
        self.assertEqual({n for n in names if 'embed' in n or '_head.h' in n},
                         set())

        out = self.engine('--exact', '--drafts', '1')
        model = load(self.config, weights)

        with torch.no_grad():
            got = model(self.ids, self.valid, 'sparse', 'float', 1)
            logits = model.logits(got.drafts[0])[0, :-1]
            wrong = model.logits(model(self.ids.roll(1, 1), self.valid,
                                       'sparse', 'float', 1).drafts[0])

        want = out['draft_logits.1'][:self.T - 1]
        d = distances(logits, want)

        self.assertLess(quantile(d, 0.5), 1e-5)
        self.assertLess(quantile(d, 0.9), 1e-4)
        self.assertGreater(quantile(distances(wrong[0, :-1], want), 0.1), 0.1)

    def test_served(self):
        out, exact = self.engine('--drafts', '1'), self.engine('--exact')
        logits, _, chosen = self.run_model(self.model, 'sparse', 'served')

        # each layer is equal to the bit in nearly all rows, if it reads what
        # the engine's reads: sums in another order are seldom rounded to
        # another number

        for name, mine in self.each_layer(out):
            self.assertEqual(quantile(distances(mine, out[name]), 0.8), 0,
                             name)

        for row in self.differing(out, chosen)[0].tolist():
            self.assertLess(float(out['gap.0'][row]), 0.005)

        # from layer to layer a different bit becomes more of them, and may
        # change the choice of an expert; the remaining difference is less than
        # the one between served and exact

        d = distances(logits, out['logits'])
        away = distances(out['logits'], exact['logits'])
        self.assertLess(quantile(d, 0.5), 0.5 * quantile(away, 0.5))

        mine = distances(logits, exact['logits'])
        self.assertLess(quantile(mine, 0.5), 1.15 * quantile(away, 0.5))

    def test_served_loss_equals_the_engine(self):
        want = F.cross_entropy(self.engine()['logits'][:-1],
                               self.ids[0, 1:])

        with torch.no_grad():
            out = self.model(self.ids, self.valid, 'sparse', 'served')
            got = self.model.loss(out.hidden, self.ids.roll(-1, 1),
                                  torch.arange(self.T)[None] < self.T - 1,
                                  'served')

        self.assertLess(abs(float(got - want)), 0.005 * float(want))


if __name__ == '__main__':
    unittest.main()
