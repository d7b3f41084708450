# Copyright (C) The nginx-dsa authors

"""The family in Chinese: its steps, its check, and the language consistency
reward of its conversations."""

import re
import unittest
from types import SimpleNamespace

from tasks import sums_zh
from tasks.task import CHAT, RETAIN, play
from train import plan, rewards
from worlds.registry import task_of


def talked(text, reasoning):
    return SimpleNamespace(
        family='sums_zh', reward=1.0, tokens=10, cut=0,
        written=[{'content': text, 'reasoning_content': reasoning}])


class SecondLanguage(unittest.TestCase):

    def test_steps(self):
        """All sums and differences: each step is true, and the last ones give
        the result."""

        step = re.compile(r'(\d+)(加|减)(\d+)等于(\d+)')

        for a in range(100):
            for b in range(100):
                for text, n in ((sums_zh.added(a, b), a + b),
                                *([(sums_zh.subtracted(a, b), a - b)]
                                  if b <= a else [])):
                    for x, op, y, z in step.findall(text):
                        self.assertEqual(int(x) + int(y) * (
                            1 if op == '加' else -1), int(z), text)

                    ones, tens = text.split('十位')
                    self.assertEqual(int(re.findall(r'\d', ones.split('，进')[0]
                                                    )[-1]), n % 10, text)
                    self.assertEqual(int(re.findall(r'\d+', tens)[-1]),
                                     n // 10, text)

    def test_answers(self):
        for n in range(199):
            self.assertEqual(sums_zh.number(sums_zh.numerals(n) + '。'), n)

        for text, n in (('一共有52个。', 52), ('等于五十二', 52), ('十五', 15),
                        ('一百零五', 105), ('３２', 32), ('是三', 3), ('-3', -3),
                        ('20加30等于50', 50), ('没有', None), ('', None),
                        ('十十', None), ('9' * 5000, 999999999)):
            self.assertEqual(sums_zh.number(text), n, text[:20])

    def test_rewards(self):
        """The gold answers are right and in the language of the request;
        English reasoning costs, in the mode that has reasoning, only the
        language reward."""

        d = plan.Domain({'sums_zh': 1}, language=0.5)

        for n in range(50):
            task = task_of('sums_zh', f'rl-{n}')
            turn, = task.turns

            for mode in (RETAIN, CHAT):
                gold = play(task, mode)[-1]
                text, thought = gold['content'], gold.get('reasoning_content')
                self.assertIsNone(turn.check(text, []))
                self.assertIsNotNone(turn.check(text + '1', []))
                self.assertEqual(rewards.reward(
                    d, task, talked(text, thought), mode).total, 1.5)
                other = rewards.reward(d, task, talked(text, 'I add.'), mode)
                if mode == CHAT:
                    self.assertEqual(other.total, 1.5)
                else:
                    self.assertLess(other.total, 1.4)


if __name__ == '__main__':
    unittest.main()
