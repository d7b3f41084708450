# Copyright (C) The nginx-dsa authors

"""The family 'sums_zh': sums and differences of numbers below 100 in Chinese.
Its reasoning and its answers are in Chinese, so that rewards can depend on the
language (train.rewards); the check is about the number alone."""

import re
import unicodedata

from tasks.task import CHAT, RETAIN, Step, Task, Turn


NUMERALS = '零一二三四五六七八九'
NUMERAL = re.compile('[零一二三四五六七八九十百]+')

ASKED = ('{a}{op}{b}等于多少？', '{a}{op}{b}是多少？', '请计算{a}{op}{b}。',
         '请问{a}{op}{b}得多少？', '算一下：{a}{op}{b}。',
         '你好，{a}{op}{b}得多少？')
PEOPLE = ('小明', '小红', '小李', '小王', '老师', '妹妹')
THINGS = ('个苹果', '本书', '支铅笔', '张邮票', '朵花', '块糖')
STORY = {'加': '{who}有{a}{thing}，又买了{b}{unit}，现在一共有多少{unit}？',
         '减': '{who}有{a}{thing}，送给朋友{b}{unit}，还剩多少{unit}？'}
SAID = ('答案是{n}。', '等于{n}。', '结果是{n}。')


def make(rng):
    op = rng.choice('加减')
    a, b = rng.randrange(100), rng.randrange(100)

    if op == '减':
        a, b = max(a, b), min(a, b)

    if rng.random() < 0.3:
        thing = rng.choice(THINGS)
        user = STORY[op].format(who=rng.choice(PEOPLE), a=a, b=b, thing=thing,
                                unit=thing[0])
    else:
        user = rng.choice(ASKED).format(a=a, b=b, op=op)

    n = a + b if op == '加' else a - b
    work = added(a, b) if op == '加' else subtracted(a, b)
    answer = rng.choice(SAID).format(n=n)

    def check(text, calls):
        return None if number(text) == n else f'{n} is not the number of: ' \
            + text

    def gold(mode):
        yield Step('', work + answer) if mode == CHAT else Step(work, answer)

    return Task('sums_zh', 'talk', [Turn(user, check, gold)], (RETAIN, CHAT))


def added(a, b):
    """Returns the steps of a sum, digit by digit."""

    low = a % 10 + b % 10
    text = f'个位：{a % 10}加{b % 10}等于{low}'

    if low > 9:
        text += f'，写{low % 10}，进1'

    high = a // 10 + b // 10
    text += f'。十位：{a // 10}加{b // 10}等于{high}'

    if low > 9:
        text += f'，再加1等于{high + 1}'

    return text + '。'


def subtracted(a, b):
    """Returns the steps of a difference, digit by digit."""

    low, high = a % 10 - b % 10, a // 10

    if low >= 0:
        text = f'个位：{a % 10}减{b % 10}等于{low}。十位：'
    else:
        text = f'个位：{a % 10}不够减{b % 10}，借1，' \
               f'{a % 10 + 10}减{b % 10}等于{low + 10}。' \
               f'十位：{high}减1等于{high - 1}，'
        high -= 1

    return text + f'{high}减{b // 10}等于{high - b // 10}。'


def number(text):
    """Returns the last number of a text, in digits, or in numerals if there
    are no digits; None if there is none."""

    text = unicodedata.normalize('NFKC', text)
    digits = re.findall(r'-?\d+', text)

    if digits:
        return int(digits[-1][:9])

    words = NUMERAL.findall(text)

    return in_numerals(words[-1]) if words else None


def in_numerals(word):
    """Returns the number below 200 that is written so, or None."""

    return next((n for n in range(200) if word in (
        numerals(n), numerals(n).removeprefix('一')
        if 10 <= n < 20 else '')), None)


def numerals(n):
    """Returns a number below 1,000 as it is written."""

    if n < 10:
        return NUMERALS[n]

    if n < 100:
        return NUMERALS[n // 10] + '十' + (numerals(n % 10) if n % 10 else '')

    rest = n % 100
    text = NUMERALS[n // 100] + '百'

    return text + ('' if rest == 0 else ('零' if rest < 10 else '')
                   + numerals(rest))
