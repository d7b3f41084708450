# Copyright (C) The nginx-dsa authors

"""Small repositories in Python and C, each with several faults that an issue
can be about.  Half of them are for training, half for evaluation."""

from dataclasses import dataclass
from typing import Dict, Tuple


@dataclass(frozen=True)
class Fault:
    """
    right, wrong   the text of the source without and with the fault
    issue          what a user reports
    test           the test patch: a test case
    """
    right: str
    wrong: str
    issue: str
    test: str


@dataclass(frozen=True)
class Repo:
    """
    language  'python' or 'c'
    path      of the source
    files     name -> text
    tests     the test cases that exist
    """
    language: str
    path: str
    files: Dict[str, str]
    tests: str
    faults: Tuple[Fault, ...]


SPANS = Repo('python', 'spans.py', {
    'spans.py': '''"""Spans of integers: (begin, end), the end excluded."""


def merge(spans):
    """Returns the spans in order, joined where they touch or overlap."""

    merged = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((begin, end))
    return merged


def covers(spans, n):
    """Returns whether a number is in one of the spans."""

    return any(begin <= n < end for begin, end in spans)


def length(spans):
    """Returns how many numbers the spans cover."""

    return sum(end - begin for begin, end in merge(spans))
''', 'README.md': '# spans\n\nWorks with spans of integers.\n'}, '''
    def test_apart(self):
        self.assertEqual(spans.merge([(5, 6), (1, 2)]), [(1, 2), (5, 6)])

    def test_overlap(self):
        self.assertEqual(spans.merge([(1, 4), (2, 6)]), [(1, 6)])

    def test_covers(self):
        self.assertTrue(spans.covers([(1, 4)], 2))
        self.assertFalse(spans.covers([(1, 4)], 7))
''', (
    Fault('begin <= merged[-1][1]', 'begin < merged[-1][1]',
          'merge([(1, 2), (2, 3)]) returns two spans. They touch, so the '
          'result should be [(1, 3)].', '''
    def test_touching(self):
        self.assertEqual(spans.merge([(2, 3), (1, 2)]), [(1, 3)])
'''),
    Fault('max(merged[-1][1], end)', 'end',
          'A span that lies within another one makes the result of merge '
          'too short: [(1, 9), (2, 3)] becomes [(1, 3)].', '''
    def test_within(self):
        self.assertEqual(spans.merge([(1, 9), (2, 3)]), [(1, 9)])
'''),
    Fault('begin <= n < end', 'begin <= n <= end',
          'covers([(1, 4)], 4) returns True, but the documentation says that '
          'the end is excluded.', '''
    def test_end_is_excluded(self):
        self.assertFalse(spans.covers([(1, 4)], 4))
        self.assertTrue(spans.covers([(1, 4)], 1))
'''),
    Fault('for begin, end in merge(spans)', 'for begin, end in spans',
          'length counts numbers twice if spans overlap.', '''
    def test_length(self):
        self.assertEqual(spans.length([(1, 5), (3, 7)]), 6)
'''),
))

LEDGER = Repo('python', 'ledger.py', {
    'ledger.py': '''"""Accounts in cents."""


class Ledger:
    def __init__(self):
        self.accounts = {}

    def book(self, account, cents):
        """Adds an amount, which may be negative."""

        self.accounts[account] = self.accounts.get(account, 0) + cents

    def move(self, source, target, cents):
        """Moves an amount; ValueError if the source has less."""

        if self.accounts.get(source, 0) < cents:
            raise ValueError("not enough")
        self.book(source, -cents)
        self.book(target, cents)

    def split(self, account, targets):
        """Moves all of an account in equal parts; the first targets get the
        cents that are left over."""

        part, left = divmod(self.accounts[account], len(targets))
        for i, target in enumerate(targets):
            self.move(account, target, part + (1 if i < left else 0))
''', 'README.md': '# ledger\n\nAccounts in cents.\n'}, '''
    def test_book(self):
        x = ledger.Ledger()
        x.book("a", 5)
        x.book("a", -2)
        self.assertEqual(x.accounts, {"a": 3})

    def test_too_much(self):
        x = ledger.Ledger()
        with self.assertRaises(ValueError):
            x.move("a", "b", 1)
''', (
    Fault('self.book(source, -cents)', 'self.book(source, cents)',
          'After a move the account from which the money comes has more than '
          'before.', '''
    def test_move(self):
        x = ledger.Ledger()
        x.book("a", 5)
        x.move("a", "b", 2)
        self.assertEqual(x.accounts, {"a": 3, "b": 2})
'''),
    Fault('< cents:', '<= cents:',
          'I cannot move all that an account has: it raises "not enough".',
          '''
    def test_all(self):
        x = ledger.Ledger()
        x.book("a", 5)
        x.move("a", "b", 5)
        self.assertEqual(x.accounts, {"a": 0, "b": 5})
'''),
    Fault('part + (1 if i < left else 0)', 'part',
          'split leaves some cents in the account.', '''
    def test_split(self):
        x = ledger.Ledger()
        x.book("a", 11)
        x.split("a", ["b", "c", "d"])
        self.assertEqual(x.accounts, {"a": 0, "b": 4, "c": 4, "d": 3})
'''),
))

WRAP = Repo('python', 'wrap.py', {
    'wrap.py': '''"""Text in lines."""


def wrap(text, width):
    """Returns the words of a text in lines of at most width characters; a
    longer word has a line of its own."""

    lines, line = [], ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = ""
        line = f"{line} {word}" if line else word
    if line:
        lines.append(line)
    return lines


def center(line, width):
    """Returns a line with blanks before it, so that it is in the middle."""

    return " " * max(0, (width - len(line)) // 2) + line


def initials(name):
    """Returns the first letters of all words, in upper case."""

    return "".join(word[0].upper() for word in name.split())
''', 'README.md': '# wrap\n\nBreaks text into lines.\n'}, '''
    def test_short(self):
        self.assertEqual(wrap.wrap("a b", 9), ["a b"])
        self.assertEqual(wrap.wrap("", 9), [])

    def test_center(self):
        self.assertEqual(wrap.center("ab", 6), "  ab")

    def test_initials(self):
        self.assertEqual(wrap.initials("Ada Lovelace"), "AL")
''', (
    Fault('len(line) + 1 + len(word) > width',
          'len(line) + len(word) > width',
          'With a width of 5, "ab cde" becomes one line of six characters.',
          '''
    def test_width(self):
        self.assertEqual(wrap.wrap("ab cde", 5), ["ab", "cde"])
        self.assertEqual(wrap.wrap("ab cd", 5), ["ab cd"])
'''),
    Fault('    if line:\n        lines.append(line)\n', '',
          'wrap drops the last line of every text.', '''
    def test_last_line(self):
        self.assertEqual(wrap.wrap("aa bb", 2), ["aa", "bb"])
'''),
    Fault('word[0].upper()', 'word[0]',
          'initials("ada lovelace") is "al". The documentation has upper '
          'case.', '''
    def test_lower(self):
        self.assertEqual(wrap.initials("ada lovelace"), "AL")
'''),
))

ROMAN = Repo('python', 'roman.py', {
    'roman.py': '''"""Roman numerals."""

SIGNS = (("M", 1000), ("CM", 900), ("D", 500), ("CD", 400), ("C", 100),
         ("XC", 90), ("L", 50), ("XL", 40), ("X", 10), ("IX", 9), ("V", 5),
         ("IV", 4), ("I", 1))


def write(n):
    """Returns the numeral of 1 to 3999; otherwise ValueError."""

    if not 1 <= n <= 3999:
        raise ValueError("out of range")
    text = ""
    for sign, value in SIGNS:
        while n >= value:
            text += sign
            n -= value
    return text


def read(text):
    """Returns the number of a numeral; ValueError if it is none."""

    rest, n = text.upper(), 0
    for sign, value in SIGNS:
        while rest.startswith(sign):
            n += value
            rest = rest[len(sign):]
    if rest or n == 0:
        raise ValueError("no numeral")
    return n
''', 'README.md': '# roman\n\nReads and writes numerals.\n'}, '''
    def test_write(self):
        self.assertEqual(roman.write(8), "VIII")
        self.assertEqual(roman.write(1000), "M")

    def test_read(self):
        self.assertEqual(roman.read("XII"), 12)

    def test_none(self):
        with self.assertRaises(ValueError):
            roman.read("hello")
''', (
    Fault('("XL", 40), ', '', 'write(40) gives XXXX.', '''
    def test_forty(self):
        self.assertEqual(roman.write(40), "XL")
        self.assertEqual(roman.read("XL"), 40)
        self.assertEqual(roman.write(1994), "MCMXCIV")
        self.assertEqual(roman.write(766), "DCCLXVI")
        self.assertEqual(roman.write(449), "CDXLIX")
'''),
    Fault('1 <= n <= 3999', '0 <= n <= 3999',
          'write(0) returns an empty text instead of an error.', '''
    def test_zero(self):
        for n in (0, 4000):
            with self.assertRaises(ValueError):
                roman.write(n)
        self.assertEqual(roman.write(1), "I")
        self.assertEqual(roman.write(3999), "MMMCMXCIX")
'''),
    Fault('text.upper(), 0', 'text, 0',
          'read("xii") raises ValueError; small letters used to work.', '''
    def test_small_letters(self):
        self.assertEqual(roman.read("xii"), 12)
        self.assertEqual(roman.read("i"), 1)
        for text in ("", "xq", "q"):
            with self.assertRaises(ValueError):
                roman.read(text)
'''),
))

RING = Repo('c', 'ring.c', {
    'ring.c': '''#include "ring.h"

/* Adds a value; returns 0 if the ring is full. */
int
ring_put(ring_t *ring, int value)
{
    if (ring->count == RING_SIZE) {
        return 0;
    }

    ring->values[(ring->first + ring->count) % RING_SIZE] = value;
    ring->count++;

    return 1;
}

/* Takes the oldest value; returns 0 if the ring is empty. */
int
ring_take(ring_t *ring, int *value)
{
    if (ring->count == 0) {
        return 0;
    }

    *value = ring->values[ring->first];
    ring->first = (ring->first + 1) % RING_SIZE;
    ring->count--;

    return 1;
}
''', 'ring.h': '''#define RING_SIZE  4

typedef struct {
    int  values[RING_SIZE];
    int  first;
    int  count;
} ring_t;

int ring_put(ring_t *ring, int value);
int ring_take(ring_t *ring, int *value);
''', 'README.md': '# ring\n\nA ring of four numbers.\n'}, '''
static void
test_one(void **state)
{
    int     v;
    ring_t  r = { 0 };

    assert_int_equal(ring_take(&r, &v), 0);
    assert_int_equal(ring_put(&r, 7), 1);
    assert_int_equal(ring_take(&r, &v), 1);
    assert_int_equal(v, 7);
}
''', (
    Fault('ring->count == RING_SIZE', 'ring->count == RING_SIZE - 1',
          'The ring takes three values only, though its size is four.', '''
static void
test_full(void **state)
{
    int     i;
    ring_t  r = { 0 };

    for (i = 0; i < RING_SIZE; i++) {
        assert_int_equal(ring_put(&r, i), 1);
    }

    assert_int_equal(ring_put(&r, i), 0);
}
'''),
    Fault('(ring->first + ring->count) % RING_SIZE',
          '(ring->count) % RING_SIZE',
          'After some values were taken, ring_take returns values in a wrong '
          'order.', '''
static void
test_order(void **state)
{
    int     v;
    ring_t  r = { 0 };

    ring_put(&r, 1);
    ring_take(&r, &v);
    ring_put(&r, 2);
    ring_put(&r, 3);
    ring_take(&r, &v);
    assert_int_equal(v, 2);
    ring_take(&r, &v);
    assert_int_equal(v, 3);
}
'''),
))

NUMBER = Repo('c', 'number.c', {
    'number.c': '''#include "number.h"

/* Reads a decimal number; returns -1 if the text is none, or too large. */
int
number_read(const char *text)
{
    int  n = 0;

    if (*text == '\\0') {
        return -1;
    }

    for ( /* void */ ; *text != '\\0'; text++) {
        if (*text < '0' || *text > '9') {
            return -1;
        }

        if (n > 99999) {
            return -1;
        }

        n = 10 * n + (*text - '0');
    }

    return n;
}

/* Returns how many digits a number from 0 has. */
int
number_digits(int n)
{
    int  digits = 1;

    while (n >= 10) {
        n /= 10;
        digits++;
    }

    return digits;
}
''', 'number.h': '''int number_read(const char *text);
int number_digits(int n);
''', 'README.md': '# number\n\nReads numbers.\n'}, '''
static void
test_read(void **state)
{
    assert_int_equal(number_read("42"), 42);
    assert_int_equal(number_read("x"), -1);
}

static void
test_digits(void **state)
{
    assert_int_equal(number_digits(0), 1);
    assert_int_equal(number_digits(123), 3);
}
''', (
    Fault("*text < '0' || *text > '9'", "*text < '0' || *text >= '9'",
          'number_read("9") returns -1.', '''
static void
test_nine(void **state)
{
    assert_int_equal(number_read("19"), 19);
    assert_int_equal(number_read("0"), 0);
    assert_int_equal(number_read(""), -1);
    assert_int_equal(number_read("999999"), 999999);
    assert_int_equal(number_read("1000000"), -1);
}
'''),
    Fault('n >= 10', 'n > 10', 'number_digits(10) is 1.', '''
static void
test_ten(void **state)
{
    assert_int_equal(number_digits(10), 2);
    assert_int_equal(number_digits(100), 3);
}
'''),
))

REPOS = {'train': (SPANS, LEDGER, RING), 'eval': (WRAP, ROMAN, NUMBER)}
