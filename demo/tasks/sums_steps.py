# Copyright (C) The nginx-dsa authors

"""Sums told as stories of clauses for daily_sums.  A story is drawn from a
grammar: a start, up to three events that change a number, sometimes a clause
that does not matter, and a question.  The thoughts quote each clause as it
stands and write at once what it does, so that a small model decides about one
operation just after it has copied the words for it:

    "My aunt picked 8 plums": 8.
    "and found 5 more": 8+5=13.
    "It was raining": nothing.
    "Then she gave 4 to Tom": 13-4=9.
    So 9.

With numbers above 20 the lines of digits.py follow the quotation.
"""

import re
from dataclasses import dataclass

from tasks import arithmetic_work, digits, names
from tasks.arithmetic_check import last_is, numbers
from tasks.daily_rough import rough
from tasks.parts import Split
from tasks.phrase import capital, expand, manner
from tasks.skills import DAYS, ONES
from tasks.task import CHAT, Step, Turn
from tasks.wording import a as one
from tasks.wording import plural


def lines(text):
    """Returns the Split of the lines of a text."""

    return Split(text.strip().splitlines())


# ------------------------------------------------------------------ the words

# base and past

IRREGULAR = dict(v.split() for v in '''begin began, break broke, bring
brought, build built, buy bought, catch caught, choose chose, come came,
cost cost, cut cut, deal dealt, do did, drink drank, drive drove, drop
dropped, eat ate, fall fell, feed fed, find found, fly flew, get got, give
gave, go went, grow grew, hang hung, have had, hold held, hop hopped, jog
jogged, keep kept, knit knitted, lay laid, lead led, leave left, lend lent,
let let, lie lay, lose lost, make made, meet met, pay paid, plan planned,
put put, quit quit, read read, ride rode, ring rang, rise rose, run ran, say
said, see saw, sell sold, send sent, set set, shine shone, show showed, sink
sank, sit sat, spend spent, split split, spread spread, step stepped, stop
stopped, swim swam, take took, throw threw, wear wore, win won,
write wrote'''.split(','))

REGULAR = '''add answer arrive ask bake board borrow call carry change
charge clean climb collect cook cool count cover cycle deliver depart die
disappear divide donate double earn end evaporate fill finish follow form
gain gather hand happen help hike invite join jump land last leak learn lift
like line live lower measure milk move need offer open order own pack paint
pass pick plant play pour practice print pull rain reach receive remove
repair return row sail save score serve sew share sign solve sort start stay
trade travel triple try turn type use visit wait walk want warm wash waste
water weigh work'''.split()


def third(base):
    """Returns the third person of a verb."""

    if base == 'have':
        return 'has'

    if re.search('[^aeiou]y$', base):
        return base[:-1] + 'ies'

    return base + ('es' if re.search('(s|sh|ch|x|z|o)$', base) else 's')


def past(base):
    if base in IRREGULAR:
        return IRREGULAR[base]

    if re.search('[^aeiou]y$', base):
        return base[:-1] + 'ied'

    return base + ('d' if base.endswith('e') else 'ed')


@dataclass(frozen=True)
class Person:
    """
    name    who it is, as the user says it
    he      the pronoun, him and his
    said    who it is in an answer
    many    the verb is that of "they"
    """
    name: str
    he: str
    him: str
    his: str
    said: str
    many: bool = False

    @property
    def fixed(self):
        return self.name in ('I', 'we')

    @property
    def whose(self):
        return self.his if self.fixed else self.name + "'s"

    @property
    def whom(self):
        return self.him if self.fixed else self.name


WOMEN = names.listed('''Adele, Agnes, Aisha, Alice, Alina, Amelia, Amy,
Anita, Anna, Astrid, Audrey, Ayesha, Bianca, Bridget, Camila, Caroline,
Celine, Chiara, Claire, Clara, Cynthia, Daphne, Delia, Diana, Donna, Dora,
Edith, Eileen, Elena, Ella, Ellen, Emily, Emma, Esther, Eva, Farah, Fatima,
Fiona, Flora, Frida, Gemma, Gina, Gloria, Habiba, Hannah, Hazel, Heidi,
Helen, Hilda, Imani, Indira, Ingrid, Irene, Isabel, Ivana, Jamila, Jane,
Joanna, Judith, Julia, Karin, Kavita, Keiko, Laila, Lakshmi, Laura, Leah,
Lily, Linda, Lisa, Lucia, Lydia, Margaret, Maria, Martha, Mei, Mina, Miriam,
Molly, Nadine, Naomi, Natalie, Nina, Noor, Olivia, Pauline, Petra, Phoebe,
Priya, Rachel, Renata, Ruth, Salma, Sandra, Silvia, Sonia, Sophie, Stella,
Susan, Tamara, Teresa, Ursula, Vera, Wendy, Yasmin, Yuki, Zahra,
Zelda''', names.one_name)

MEN = names.listed('''Aaron, Abbas, Adam, Ahmed, Alan, Albert, Ali, Alvaro,
Andrew, Arjun, Arthur, Ben, Bernard, Bilal, Bjorn, Boris, Brian, Carl,
Carlos, Cedric, Chidi, Colin, Connor, Daniel, David, Deepak, Dennis, Diego,
Dmitri, Dylan, Edgar, Edwin, Emmanuel, Enrique, Eric, Ethan, Farid, Frank,
Fred, Gavin, George, Giovanni, Gordon, Greg, Gustav, Hamza, Harry, Hassan,
Hector, Henry, Hiroshi, Ian, Ibrahim, Igor, Imran, Isaac, Ivan, Jack, Jacob,
Jakob, Jason, Joel, Johan, John, Jordan, Jose, Juan, Julian, Kaito, Karl,
Kenji, Khalid, Kofi, Kwame, Larry, Leon, Lewis, Liam, Linus, Louis, Lukas,
Magnus, Malcolm, Marco, Martin, Mateo, Mehmet, Miguel, Milan, Murat, Neil,
Nikolai, Noah, Oliver, Omar, Oscar, Otto, Owen, Pablo, Paul, Pavel, Pedro,
Peter, Philip, Pierre, Rafael, Raj, Ramon, Rashid, Ricardo, Robert, Roland,
Ryan, Sanjay, Sean, Sergei, Simon, Stefan, Steven, Tariq, Thomas, Tobias,
Tomas, Umar, Victor, Walter, Werner, Xavier, Yuri''', names.one_name)

KIN = {'she': names.listed('''sister, mother, aunt, daughter, niece, grandma,
wife, boss, neighbor, cousin, friend, colleague, roommate, teacher'''),
       'he': names.listed('''brother, father, uncle, son, nephew, grandpa,
husband, boss, neighbor, cousin, friend, colleague, roommate, teacher''')}

ROLES = names.listed('''baker, barber, builder, caretaker, clerk, coach, cook,
dentist, doctor, driver, farmer, florist, gardener, guide, janitor, librarian,
mechanic, nurse, painter, pharmacist, plumber, postman, potter, sailor,
secretary, singer, student, tailor, teacher, trainer, vet, waiter, weaver''')

HIS = {'he': ('him', 'his'), 'she': ('her', 'her')}

I = Person('I', 'I', 'me', 'my', 'you', True)   # noqa: E741
WE = Person('we', 'we', 'us', 'our', 'you', True)


def first_name(rng, he):
    return rng.choice(MEN if he == 'he' else WOMEN)


def person(rng, alone=False):
    """Returns somebody of whom a story is told; alone: not several."""

    way = rng.random()
    he = rng.choice(('he', 'she'))

    if way < 0.24:
        return I

    if way < 0.32 and not alone:
        if way < 0.29:
            return WE

        pair = ' and '.join(sorted({first_name(rng, 'he'),
                                    first_name(rng, 'she')}))

        return Person(pair, 'they', 'them', 'their', pair, True)

    if way < 0.46:
        kin = rng.choice(KIN[he])
        return Person('my ' + kin, he, *HIS[he], 'your ' + kin)

    name = 'the ' + rng.choice(ROLES) if way < 0.53 else first_name(rng, he)

    return Person(name, he, *HIS[he], name)


OTHER = lines('''a friend
{his} sister
{his} brother
{his} cousin
{his} neighbor
{his} uncle
{his} aunt
{his} best friend
{his} grandmother
{his} grandfather
{his} teacher
a colleague
a classmate
the caretaker
{his} niece
{his} nephew
a stranger
{his} godmother
a visitor''')


def other(rng, who, named=True):
    """Returns the name of another person.  named: who was named before, so
    that "her sister" is understood."""

    if rng.random() < 0.5 or not named:
        name = first_name(rng, rng.choice(('he', 'she')))

        return name if name not in who.name else other(rng, who, named)

    said = rng.choice(OTHER).replace('{his}', who.his)

    return said if said.split()[-1] != who.name.split()[-1] \
        else other(rng, who)


class Fields(dict):
    """The fields of a clause; a verb is conjugated: {give} for the one of whom
    a story is told, {x_give} for another one, {they_give} for several."""

    def __init__(self, who, in_past, **fields):
        super().__init__(fields)
        self.who, self.past = who, in_past

    def __missing__(self, key):
        about, _, base = key.rpartition('_')
        past_told = self.past and about != 'now'
        many = about == 'they' or about in ('', 'now') and self.who.many

        if base == 'be':
            if past_told:
                return 'were' if many and (about == 'they'
                                           or self.who is not I) else 'was'

            return 'am' if many and about != 'they' and self.who is I \
                else 'are' if many else 'is'

        if base not in IRREGULAR and base not in REGULAR:
            raise KeyError(key)

        return past(base) if past_told else base if many else third(base)


# ------------------------------------------------------------------- the work

EASY = 20               # larger numbers are worked out digit by digit


def price(cents):
    return f'{cents / 100:.2f}'


def work(op, a, b, cents=False):
    """Returns (result, lines) of an operation.  What is easy is one line; else
    the first line states the operation.  cents: these are cents, but not the
    number by which they are multiplied or divided."""

    n = arithmetic_work.VALUE[op](a, b)

    if cents:
        both = op in '+-'
        given = (a, b) if both else (a,)

        return n, [f'{price(a)}{op}{price(b) if both else b}',
                   *(f'{price(c)}={c} cents' for c in given),
                   *arithmetic_work.WRITE[op](a, b),
                   f'{n} cents={price(n)}']

    if max(a, b, n) <= EASY or op == '/' and b > 9:
        return n, [f'{a}{op}{b}={n}']

    written = arithmetic_work.WRITE[op](a, b)

    return n, written if len(written) == 1 else [f'{a}{op}{b}', *written]


def joined(*parts):
    """Returns the lines of operations one after the other; easy ones share a
    line."""

    done, now = [], []

    for part in parts:
        now.append(part[0])

        if len(part) > 1:
            done += ['then ' * bool(done) + ', '.join(now), *part[1:]]
            now = []

    return done + ['then ' * bool(done) + ', '.join(now) + '.'] * bool(now)


def called(label, done, n):
    """Returns the lines of an operation whose result is somebody's."""

    return [f'{label} {done[0]}', *done[1:]] + (
        [f'{label} {n}.'] if len(done) > 1 else [])


# ------------------------------------------------------------------- a story

MARK = '\x1f'           # between the clauses while a user types them

# clauses that say when something happens have no adverb before them

WHEN = re.compile(
    r'\b(day|days|week|month|year|soon|later|before|after|noon|hour|hours'
    r'|Friday|Sunday|Monday|in the (end|evening|morning)|at (once|first)'
    r'|one by one|already|end|next)\b')

# the end of a clause that has another subject

INNER = re.compile(r'(, and|, which|, who|, each| and (one|each)) ')

ADVERBS = lines('''Then
Later
After that
Afterwards
A little later
Soon after that
Next
After a while
Some time later
A bit later
Thereafter''')

LEADS = lines('''[A riddle|A puzzle|A sum] for you:
[Homework question|A question from school|From my maths book]:
[Can|Could] you [solve this|work this out][ for me|]?
[Help me with this one|I am stuck here], please.
[Try this|Solve this]:
[Quick question|Small question|One more sum]:
I need a [quick|short] answer.
[My daughter|My son|A pupil of mine] [asked|wants to know] this.
[Let's see|Now this]:
[Next problem|Problem 3|Exercise b]:
This came up [at home|at work|in class]:
[Work this out|Calculate this], please:''')


@dataclass
class Clause:
    """
    before   the text between it and the clause before
    text     its template
    fields   the values of the template's fields
    starts   it begins a sentence
    lines    what it does, or None
    """
    before: str
    text: str
    fields: dict
    starts: bool
    lines: object


def uncapital(text):
    """Returns the text of a clause as it is within a sentence."""

    return text if text.startswith('I ') else text[0].lower() + text[1:]


class Story:
    """A story while it is told.

    who     of whom it is told
    past    whether it is told in the past
    frame   '', 'if' if it is one sentence with the question at its end,
            'first' if the question is before the story
    steady  its clauses state facts and do not follow each other in time
    """

    def __init__(self, rng, who=None, past=None, frames=True, steady=False):
        self.rng = rng
        self.steady = steady
        self.who = who or person(rng)
        way = rng.random()
        self.frame = '' if not frames or way < 0.82 else \
            'if' if way < 0.93 else 'first'
        self.past = False if self.frame == 'if' else \
            rng.random() < 0.65 if past is None else past
        self.in_words = rng.random() < 0.25
        self.clauses = []
        self.named = self.acted = self.others = False
        self.length = 0         # clauses of the sentence

    def number(self, n):
        """Returns a number as the user writes it."""

        return ONES[n] if self.in_words and n <= 12 \
            and self.rng.random() < 0.7 else str(n)

    def given(self, **more):
        """Returns the fields of a clause."""

        return Fields(self.who, self.past, **{
            k: self.number(v) if isinstance(v, int) else v
            for k, v in more.items()})

    def tell(self, texts, done, apart=False, **fields):
        """Adds a clause.

        texts   templates of which one is drawn, or a template
        done    the lines of what it does
        apart   it is a sentence of its own
        """
        rng = self.rng
        text = expand(rng, texts if isinstance(texts, str)
                      else rng.choice(texts))
        before, starts = '', not self.clauses
        acts = text.startswith('{s} ')

        if text[0] == '+':
            before, text = ' ', text[1:]
            acts = self.acted
            self.length += 1
        elif self.clauses:
            before, text, starts = self.connected(text, acts, apart)

        fields = self.given(**fields)

        if '{x}' in text:
            fields['x'] = other(rng, self.who, self.named or self.who.fixed)
            self.others = True

        self.name(text, fields)

        self.acted = acts and not INNER.search(text)
        self.length = 9 if apart else 1 if starts else self.length
        self.clauses.append(Clause(before, text, fields, starts, done))

    def connected(self, text, acts, apart):
        """Returns (text before a clause, the clause with its conjunction,
        whether it begins a sentence)."""

        rng = self.rng
        whole = self.frame == 'if'

        if not whole and (apart or self.length > 1
                          or rng.random() < 0.5):
            way = rng.random()

            if not apart and way < 0.3 and not self.steady \
                    and not WHEN.search(text):
                adverb = rng.choice(ADVERBS) + rng.choice((' ', ', '))

                return '. ', adverb + uncapital(text), True

            return ('.\n' if way > 0.97 else '. '), text, True

        self.length += 1
        rest = text[4:] if acts and self.acted else uncapital(text)

        if whole:
            return rng.choice((' ', ', ')), 'and ' + rest, False

        if self.steady or WHEN.search(text) or rng.random() < 0.5:
            return ' ', 'and ' + rest, False

        return rng.choice(((' ', 'and then ' + rest, False),
                           (', ', 'then ' + rest, False)))

    def name(self, text, fields):
        """Adds the fields for the one of whom the story is told: the name at
        first, and later mostly a pronoun."""

        who, rng = self.who, self.rng
        again = self.named and (who.fixed or rng.random()
                                < (0.3 if self.others else 0.8))
        said = re.findall(r'\{(s|q|his|him)\}', text)
        owned = not self.named and said[:1] in (['his'], ['him'])
        fields['s'] = fields['q'] = who.he if again or owned else who.name
        fields['he'] = who.he
        fields['his'] = who.whose if owned else who.his
        fields['him'] = who.whom if owned else who.him
        self.named = self.named or said != []

    def noise(self, texts, chance=0.2):
        """Adds, now and then, a clause that does not matter."""

        if self.frame != 'if' and self.rng.random() < chance:
            text = self.rng.choice(texts)
            self.tell(text, ['nothing.'], True,
                      z=self.rng.randrange(3, 30))

    def ask(self, texts, done=None, **fields):
        """Adds the question.  done: the lines of what it does, if it does
        something."""

        rng = self.rng
        text = expand(rng, rng.choice(texts))
        fields = self.given(**fields)

        if self.frame == 'first' and (done is not None
                                      or 'thing' not in text):
            self.frame = ''

        if self.frame == 'first':
            self.named = False

        self.name(text, fields)

        if self.frame == 'if':
            self.clauses.append(Clause(', ', uncapital(text), fields, False,
                                       done))
        elif self.frame == 'first':
            self.clauses.insert(0, Clause('', text, fields, True, done))
            self.clauses[1].before = ' '
        else:
            self.clauses.append(Clause(
                '.\n' if rng.random() < 0.04 else '. ', text, fields, True,
                done))

    def typed(self):
        """Returns (message, quotations of the clauses)."""

        rng = self.rng

        if self.frame == 'if':
            c = self.clauses[0]
            c.text = 'If ' + uncapital(c.text)

        for c in self.clauses:
            if c.starts:
                c.text = c.text[0].upper() + c.text[1:]

        whole = MARK.join(c.text for c in self.clauses)
        changed = rough(rng, whole)
        small = changed == changed.lower() and changed != whole
        said, quotes = '', []

        for c, text in zip(self.clauses, changed.split(MARK)):
            text = text.format_map(c.fields)
            text = capital(text) if c.starts and not small else text
            said += (c.before if said else '') + text
            quotes.append(text.rstrip('.?'))

        said += '' if said[-1] in '.?' else \
            '.' if self.frame == 'first' else '?'

        if self.frame == 'first':
            pass
        elif changed != whole:
            said = said if rng.random() < 0.8 else said.rstrip('.?')
        elif rng.random() < 0.08:
            said = expand(rng, rng.choice(LEADS)) + ' ' + said
        else:
            said = manner(rng, said, self.clauses[0].text[0] == '{')

        return said, [q if q in said else q[0].lower() + q[1:]
                      for q in quotes]

    def turn(self, answers, result, right, **fields):
        """Returns the Turn.

        answers   wordings of the answer
        result    what the thoughts end with
        right     (answer, message) -> None or why it is wrong
        fields    those of the answers
        """
        rng = self.rng
        user, quotes = self.typed()
        thoughts = []

        for c, quote in zip(self.clauses, quotes):
            if c.lines is not None:
                thoughts += [f'"{quote}": {c.lines[0]}', *c.lines[1:]]

        thoughts.append(f'So {result}.')
        answer = self.answer(answers, **fields)

        def gold(mode):
            if mode == CHAT:
                yield Step('', '\n'.join(thoughts + [answer]))
            else:
                yield Step('\n'.join(thoughts), answer)

        return Turn(user, lambda text, calls: 'there was nothing to call'
                    if calls else right(text, user), gold)

    def answer(self, answers, **fields):
        """Returns an answer; that with the number 1 has no noun after it."""

        rng, who = self.rng, self.who
        found = [t for t in answers.splitlines()
                 if fields.get('n') not in ('1', '1.00')
                 or not re.search(r'\{n\} (\{|days|years)|are|were', t)]
        again = not who.fixed and self.named and rng.random() < 0.4
        said = Fields(who, False, A=who.he if again else who.said, **fields)

        return capital(expand(rng, rng.choice(found or answers.splitlines()))
                       .format_map(said))


def is_number(n):
    """Returns the check of an answer: n is its last number, or the only number
    of its last line that the message does not have."""

    def right(answer, user):
        why = last_is(answer, n)
        said = numbers(answer.strip().split('\n')[-1])
        new = {x for x in said if x not in numbers(user)}

        return None if why is None or new == {n} else why

    return right


def draw(rng, low, high, fits=lambda n: True):
    """Returns a number of a range that fits, or None."""

    found = [n for n in range(low, high + 1) if fits(n)]

    return rng.choice(found) if found else None


def start(rng, most=99):
    """Returns a number to begin with, more often a small one."""

    return rng.randint(5, 20) if rng.random() < 0.6 else rng.randint(12, most)


NOISE = lines('''It {x_be} [Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday]
It {x_be} [raining|snowing|very windy|rather cold|quite warm]
The sun {x_shine}
The radio {x_be} on
The [dog|cat] {x_be} asleep [on the sofa|in the corner]
Everybody {x_be} in a good mood
The [door|window] {x_be} open
It {x_be} [early in the morning|late in the evening|just before noon]
Nobody {x_be} in a hurry
The walls {they_be} [white|green|blue|gray]
Somebody {x_play} the piano next door
The house number {x_be} {z}
It {x_be} {z} degrees outside
{x} {x_be} {z} years old
The way there {x_take} {z} minutes
The phone {x_ring} {z} times
The building {x_have} {z} floors
{x} {x_live} on floor {z}
{x} {x_wear} a shirt with the number {z}
The bus number {x_be} {z}
The street {x_have} {z} lamps
{x} {x_wait} {z} minutes outside
The radio {x_play} {z} songs in that time
The clock on the wall {x_be} {z} years old
The garden {x_be} {z} meters long
The lamp {x_hang} {z} steps from the door''')

# clauses that do not matter where times, ages or distances do

PLAIN = lines('''It {x_be} [raining|snowing|very windy|rather cold|quite warm]
The sun {x_shine}
The radio {x_be} on
Everybody {x_be} in a good mood
Nobody {x_be} in a hurry
There {they_be} {z} [chairs|flowers|plants] at the entrance
The bus number {x_be} {z}
{x} {x_wear} a shirt with the number {z}
The house number {x_be} {z}
{x} {x_bring} {z} [cookies|apples|biscuits] along
The ticket {x_cost} {z} euros
{z} people {they_be} [there|in the street]
The street {x_have} {z} lamps
The room {x_have} {z} chairs''')


# ------------------------------------------------------- answers of all kinds

COMMON = '''{n}.
[It is|That is|It's|That's] {n}.
[The answer is|The result is] {n}.
[That makes|I get] {n}.
'''

NOW = COMMON + '''{n} {things}.
{A} {have} {n} {things} now.
{A} {have} {n} {things}.
[Now there are|In the end there are|That makes] {n} {things}.
[Now it is|In the end it is|At the end:] {n}.'''

LEFT = COMMON + '''{n} {things}.
{n} {things} [are left|remain].
{A} {have} {n} {things} left.
{A} still {have} {n} {things}.
[Left are|There remain|That leaves] {n} {things}.'''

THERE = COMMON + '''{n} {things}.
[There are|Now there are|In the end there are] {n} {things}.
[There are|Now there are] {n} {things} {where}.
[Now it is|That leaves|In the end:] {n}.
{n} {things} [are|are now] {where}.'''

EACH = COMMON + '''{n} {things} each.
[Each gets|Everyone gets|One share is] {n}.
[Each one gets|Each of them gets] {n} {things}.
{n} [for each|apiece].
Everybody has {n} {things}.'''

IN_EACH = COMMON + '''{n} {things} in each.
[In each there are|Each has|Each one holds] {n}.
[In each one there are|Each of them has] {n} {things}.
There are {n} {things} in each {box}.'''

PACKS = COMMON + '''{n} {boxes}.
[That makes|That fills|That gives] {n} {boxes}.
{A} {have} {n} {boxes}.
[There are|You get] {n} {boxes}.'''

MONEY = COMMON + '''{n} {cur}.
[It is|That is|It comes to|That makes] {n} {cur}.
'''

COST = MONEY + '''[The price is|The total is|The bill is|In all it is] {n} {cur}.
It costs {n} {cur}.
[Together|Altogether|All in all] {n} {cur}.'''

BACK = MONEY + '''The change is {n} {cur}.
{A} {get} {n} {cur} back.
{n} {cur} [back|in change].
[There are|What comes back is] {n} {cur}.'''

PURSE = MONEY + '''{A} {have} {n} {cur}[ now|].
[There are|There remain] {n} {cur}.
{n} {cur} [are there|in the end|].'''

SHARE = MONEY + '''{n} {cur} [each|per person].
[Each pays|Everyone pays|One share is] {n} {cur}.
[Each of them|Every one] pays {n} {cur}.'''

UNITS = COMMON + '''{n} {things}.
[It is|That is|That makes|In all it is] {n} {things}.
[Altogether|In total|All in all] {n} {things}.
[The total is|The sum is] {n} {things}.'''

IN_DAYS = COMMON + '''{n} days.
[It takes|That takes|It is] {n} days.
[After|In] {n} days.
[That is a matter of|The time is] {n} days.'''

AMOUNT = COMMON + '''{n} {things}.
[It is|That is|It's|That's] {n} {things}.
[The answer is|The result is] {n} {things}.
[Now it is|In the end it is] {n}.
[That makes|I get] {n} {things}.'''

FLOOR = COMMON + '''Floor {n}.
On floor {n}.
[It is|It is now] on floor {n}.'''

PORTION = COMMON + '''{n} {things}.
[It is|That is|These are] {n} {things}.
{n} of them.
{n} of the {things}.'''

MISSING = COMMON + '''{n} {things}.
{n} more.
Another {n} {things}.
[Missing are|Still missing:] {n} {things}.
{A} {need} {n} more.'''

DIFFER = COMMON + '''{n} {things}.
{n} more.
[The difference is|It is a difference of] {n}.
[The difference is|It is a difference of] {n} {things}.
[It is|That is] {n} {things}.'''

GO = COMMON + '''{n} {things}.
{n} {things} [to go|more|are left].
[There are|Still to go:|What is left is] {n} {things}.
Another {n} {things}.'''


# ---------------------------------------------------------------- their goods

# goods, what they are kept in, and whether they are eaten

GOODS = Split((
    (names.listed('''apples, apricots, cherries, figs, grapes, lemons, limes,
        mangoes, melons, oranges, peaches, pears, plums, strawberries,
        tangerines, bananas, kiwis, blackberries'''),
     'basket bag bowl crate box', True),
    (names.listed('''carrots, tomatoes, potatoes, radishes, peppers, cucumbers,
        leeks, turnips, mushrooms, onions, pumpkins, beans, olives'''),
     'basket bag crate box bowl', True),
    (names.listed('''rolls, buns, muffins, waffles, pretzels, cookies,
        biscuits, pancakes, croissants, bagels, cupcakes, pies, scones,
        doughnuts'''), 'tray box bag basket tin', True),
    (names.listed('''sweets, toffees, lollipops, chocolates, gummy bears,
        caramels, mints, marshmallows, chocolate bars'''), 'bag jar tin box',
     True),
    (names.listed('''walnuts, hazelnuts, almonds, chestnuts, peanuts, dates,
        raisins, eggs, sandwiches, dumplings, sausages, meatballs'''),
     'bag bowl box pot', True),
    (names.listed('''marbles, stickers, trading cards, toy cars, dice, beads,
        puzzles, dolls, balloons, model planes, building blocks, tin soldiers,
        badges'''), 'box bag case drawer', False),
    (names.listed('''stamps, coins, postcards, shells, pebbles, photos, bottle
        caps, feathers, fossils, key rings, tickets, buttons, crystals'''),
     'box tin drawer album jar', False),
    (names.listed('''pens, pencils, crayons, erasers, notebooks, rulers,
        folders, paper clips, envelopes, markers, exercise books, brushes'''),
     'box drawer case pack', False),
    (names.listed('''screws, nails, bolts, hooks, tiles, bricks, boards,
        batteries, light bulbs, hinges, washers, planks'''),
     'box crate jar pack', False),
    (names.listed('''seeds, tulip bulbs, seedlings, roses, flower pots, pine
        cones, sunflowers, cuttings, herbs, daisies'''), 'tray box bag crate',
     False),
    (names.listed('''cups, plates, glasses, spoons, forks, bowls, mugs,
        candles, napkins, vases, jars, towels'''), 'box crate cupboard basket', False),
    (names.listed('''socks, hats, scarves, gloves, shirts, ribbons, caps,
        belts, buttons, T-shirts, headbands'''), 'drawer bag box basket',
     False),
    (names.listed('''books, comics, magazines, records, films, maps, novels,
        letters, songbooks'''), 'box bag drawer case', False),
    (names.listed('''tennis balls, golf balls, medals, shuttlecocks, jerseys,
        footballs, darts, skittles'''), 'bag box net case', False)))

HAVE = lines('''{s} {have} {n} {things} at home
{s} {have} {n} {things} in {a_box}
There {they_be} {n} {things} in {his} {box}
In {his} {box} there {they_be} {n} {things}
{s} {have} {a_box} with {n} {things} in it
{s} {have} {a_box} of {n} {things}
{s} {put} {n} {things} in {a_box}
{s} {bring} home {n} {things}
{s} {start} with {n} {things}
{s} {get} {n} {things} from {x}
{x} {x_give} {him} {n} {things}
{s} {keep} {n} {things} in {a_box}
{s} {count} {n} {things} in {his} {box}
{n} {things} {they_be} in {his} {box}
{s} {own} {n} {things}
{s} {buy} {n} {things}
{s} {find} {n} {things} in an old {box}
{his} {box} {x_hold} {n} {things}
At first {s} {have} just {n} {things}
{x} {x_send} {him} {a_box} with {n} {things}
{s} {begin} the day with {n} {things}
{s} {take} {n} {things} along
{s} {receive} a gift of {n} {things}''')

GROUPS = lines('''{s} {have} {m} {boxes} with {k} {things} each
{s} {fill} {m} {boxes} with {k} {things} each
{s} {buy} {m} {boxes} of {k} {things}
There {they_be} {m} {boxes} with {k} {things} in each
{s} {pack} {k} {things} into each of {m} {boxes}
Each of {his} {m} {boxes} {x_hold} {k} {things}
{s} {get} {m} {boxes} of {k} {things} from {x}
{s} {put} {k} {things} into every one of {m} {boxes}
{m} {boxes} {they_hold} {k} {things} each
In each of {m} {boxes} there {they_be} {k} {things}
{s} {carry} home {m} {boxes}, each with {k} {things}
{x} {x_bring} {m} {boxes} of {k} {things} each
{s} {get} {k} {things} from each of {m} friends
{m} friends {they_give} {him} {k} {things} each
{s} {lay} out {m} rows of {k} {things}
{s} {order} {m} {boxes}, and each one {x_have} {k} {things} in it
On {m} tables {s} {lay} {k} {things} each
{s} {set} up {m} {boxes} and {put} {k} {things} in each
{s} {make} {m} piles of {k} {things}
{m} times {s} {collect} {k} {things}
{s} {have} {k} {things} in each of {m} {boxes}''')

GAIN = lines('''{s} {get} {n} more
{s} {get} {n} more from {x}
{s} {find} {n} more[ in the cellar| in the car| at home| on the floor|]
{s} {buy} {n} more
{s} {buy} another {n}[ in town| at the market|]
{s} {add} {n}
{s} {add} {n} [more|new ones]
{x} {x_give} {him} {n} more
{x} {x_bring} {him} another {n}
{n} more {they_come} [by mail|in a parcel|from {x}]
{s} {receive} {n} [more|new ones] as a gift
{s} {win} another {n} [at the fair|in a raffle|in a game]
{s} {pick} up {n} more[ on the way|]
{s} {borrow} {n} more from {x}
{s} {collect} another {n}
{x} {x_add} {n} more
{s} {bring} in {n} more
there {they_be} {n} more [in the kitchen|in the car|upstairs]
{x} {x_send} {him} {n} more
{s} {gather} {n} more
{s} {put} {n} more with them
{x} {x_leave} {n} more for {him}
{s} {take} {n} more from {x}''')

LOSE = lines('''{s} {lose} {n} of them
{s} {lose} {n}[ on the way| in the park| on the bus|]
{n} of them {they_get} lost
{n} {they_go} missing
{n} of them {they_be} [damaged|stolen|ruined]
{n} of them {they_fall} [on the floor|into the river|out of the {box}]
{s} {drop} {n} of them [into a puddle|into the river|in the street]
{s} {throw} {n} away
{s} {throw} away {n} of them
{x} {x_take} {n} of them
{s} {leave} {n} on the bus
{n} of them {they_disappear}
somebody {x_take} {n}
{s} {have} to throw {n} away
a dog {x_run} off with {n} of them
{s} {use} {n} of them
{s} {use} up {n}
{n} {they_be} of no use any more
{x} {x_lose} {n} of them
{n} of the {things} {they_be} gone
{s} {waste} {n} of them
{s} {remove} {n}
{n} of them {they_be} taken away''')

GIVE = lines('''{s} {give} {n} to {x}
{s} {give} {x} {n} of them
{s} {give} away {n}
{s} {give} {n} away
{s} {hand} {n} [of them |]to {x}
{s} {send} {n} to {x}
{s} {pass} {n} on to {x}
{s} {donate} {n}[ to the school| to the club|]
{s} {sell} {n} of them[ at the market| to {x}|]
{x} {x_ask} for {n} and {x_get} them
{x} {x_get} {n} from {him}
{n} of them {they_go} to {x}
{s} {leave} {n} for {x}
{s} {bring} {n} of them to {x}
{s} {let} {x} have {n}
{s} {hand} over {n} of them
{s} {lend} {n} to {x}
{x} {x_buy} {n} of them
{s} {make} {x} a present of {n}
{s} {trade} {n} of them for a book
{s} {return} {n} to {x}''')

EAT = lines('''{s} {eat} {n}
{s} {eat} {n} [for lunch|after dinner|on the way]
{s} {eat} {n} of them
{x} {x_eat} {n} of them
{n} of them {they_be} eaten [at once|at breakfast]
{s} {have} {n} for [breakfast|supper]
the children {they_eat} {n}
{s} {finish} {n} of them
{s} {serve} {n} to the guests
the dog {x_eat} {n}
{s} {use} {n} for [a party|a picnic]
{s} {feed} {n} to the [goats|geese|pigs]
{n} {they_go} into {his} lunch box
{s} {cook} with {n} of them
{x} {x_have} {n} for [breakfast|supper]
mice {they_eat} {n} of them
{n} of them {they_go} bad
the birds {they_get} {n} of them
{x} {x_try} {n}''')

PART = lines('''{s} {give} {part} of them to {x}
{s} {give} away {part} of them
{s} {sell} {part} of them
{s} {lose} {part} of them
{part} of them {they_get} lost
{x} {x_take} {part} of them
{s} {give} {x} {part} of the {things}
{part} of the {things} {they_be} [damaged|stolen|gone]
{s} {use} up {part} of them
{s} {send} {part} of them to {x}
{s} {bring} {part} of the {things} to {x}
{part} of them {they_go} to {x}
{s} {throw} {part} of them away
{x} {x_get} {part} of them
{s} {hand} {part} of them to {x}
{s} {donate} {part} of them
{s} {leave} {part} of them with {x}
{x} {x_buy} {part} of the {things}
{s} {let} {x} have {part} of them
{s} {trade} {part} of them for a book''')

KEEP = lines('''{s} {keep} only {part} of them
only {part} of them {they_be} still good
all but {part} of them {they_be} lost
in the end only {part} of the {things} {they_be} left
just {part} of them {they_come} back
{s} {keep} no more than {part} of them
only {part} of the {things} {they_stay} with {him}
{s} {get} back only {part} of them
no more than {part} of them {they_stay}
{s} {save} only {part} of them
{s} {have} only {part} of them left
only {part} of them {they_be} there the next day''')

PARTS = {2: '[half|half|half|one half]', 3: '[a third|one third]',
         4: '[a quarter|one quarter]', 5: '[a fifth|one fifth]'}

TIMES = lines('''the number {times_it}
{x} {x_give} {him} enough so that {he} {have} {times_many}
soon {s} {have} {times_many}
by the end of the week {s} {have} {times_many}
a week later {s} {have} {times_many}
{s} {get} so many more that {he} {have} {times_many}
{s} {buy} until {he} {have} {times_many}
the number of {things} {times_it}
with the help of {x}, {s} {have} {times_many} before long
by Friday {s} {have} {times_many}
{s} {collect} until there {they_be} {times_many}
in a month there {they_be} {times_many}
{his} collection {times_it}
a year later there {they_be} {times_many}''')

TIMES_MANY = {2: '[twice as many|twice as many|two times that number]',
              3: '[three times|triple] that number'}

BRING = lines('''{m} friends each {they_bring} {k} more
{m} friends {they_bring} {k} more each
each of {m} friends {x_give} {him} {k} more
every day for {m} days {s} {get} {k} more
for {m} days {s} {find} {k} more each day
{s} {buy} {m} more {boxes} with {k} in each
{m} {boxes} with {k} more in each {they_come} by mail
{m} children {they_add} {k} each
{x} {x_bring} {m} {boxes} with {k} each
on each of {m} days {s} {collect} another {k}
{s} {get} {k} more from each of {m} neighbors
{m} times {s} {add} {k} more
{m} visitors {they_leave} {k} more each''')

GIVES = lines('''{s} {give} {k} to each of {m} friends
{m} friends {they_take} {k} each
each of {m} children {x_get} {k} from {him}
every day for {m} days {s} {give} away {k}
for {m} days {s} {lose} {k} a day
{s} {send} {k} each to {m} cousins
{m} children {they_get} {k} each
{s} {sell} {k} to each of {m} customers
{m} neighbors {they_get} {k} apiece
on each of {m} days {s} {use} {k}
{s} {put} {k} each in {m} parcels and {send} them off
{s} {hand} {k} to every one of {m} guests
{m} times {s} {throw} {k} away''')

SHARED = lines('''{s} {share} them equally among {k} friends
{s} {divide} them equally between {k} children
{k} friends {they_share} them equally
{s} {deal} them out evenly to {k} players
{k} children {they_get} the same number each
they {they_be} split evenly {k} ways
each of {k} children {x_get} the same number
everyone in a group of {k} {x_get} an equal share
{s} {hand} them out to {k} guests, equally many to each
{k} cousins {they_divide} them fairly among themselves
{s} {give} them all to {k} neighbors, the same number to each
all of them {they_be} shared out evenly among {k} people
{k} pupils {they_take} equally many of them
{s} {split} them fairly among {k} kids''')

BOXED = lines('''{s} {put} them into {k} {boxes}, the same number in each
{s} {pack} them into {k} {boxes}, equally many in each
{s} {sort} them into {k} equal piles
{s} {spread} them evenly over {k} tables
{s} {make} {k} equal rows of them
{s} {fill} {k} {boxes} with them, all with the same number
they {they_be} packed evenly into {k} {boxes}
{k} {boxes} {they_hold} them all, each with equally many
{s} {divide} them equally over {k} {boxes}
{s} {lay} them out in {k} equal rows
all of them {they_go} into {k} {boxes}, evenly
{s} {form} {k} equal groups of them
{x} {x_put} them into {k} {boxes}, the same number in each''')

PACKED = lines('''{s} {pack} them in {boxes} of {k} each
{k} of them {they_go} into one {box}
{s} {put} {k} into each {box}
each {box} {x_hold} {k} of them
{s} {put} them in {boxes} with {k} in each
{s} {sell} them in {boxes} that hold {k}
{s} {fill} {boxes} with {k} each
one {box} {x_hold} just {k}
in each {box} there {x_be} room for {k}
always {k} of them {they_share} a {box}
{x} {x_pack} them, {k} to a {box}
they {they_be} packed in {boxes}, {k} in each''')

HOW_MANY = lines('''How many {things} {now_do} {q} have now?
How many {now_do} {q} have now?
How many {things} {now_do} {q} have at the end?
How many {things} does that make?
What is the number of {things} now?
How many {things} {now_do} {q} end up with?
With how many {things} {now_do} {q} end up?
Tell me how many {things} {q} {now_have} now.
[Can you tell me|Do you know] how many {things} {q} {now_have}?
So how many {things} are there?
How many {things} is that now?
How many {things} is that in all?
How many {things} {now_do} {q} own then?
Count {his} {things}.
How many in the end?
[Now the question|The question]: how many {things} {now_do} {q} have?
{his} {things}, how many are they now?
And now {q} {now_have} how many {things}?''')

HOW_MANY_LEFT = lines('''How many {things} {now_do} {q} have left?
How many {things} are left?
How many are left?
How many {things} remain?
How many {now_do} {q} still have?
How many {things} {now_do} {q} still have?
How many {things} does that leave?
How many {things} {now_do} {q} keep?
How many {things} are there still?
[Tell me|Say] how many {things} are left.
What number of {things} is left[ over|]?
How many remain in the end?
How many of the {things} are left?
[Can you say|Do you know] how many {things} remain?''')

TOTAL = lines('''How many {things} {now_do} {q} have altogether?
How many {things} is that in all?
How many {things} are there altogether?
How many {things} are that together?
How many {now_do} {q} have in total?
What is the total number of {things}?
How many {things} {now_do} {q} have now?
[Add up|Count] all the {things}.
[Tell me|Say] how many {things} there are in all.
What is the sum of all the {things}?
In all, how many {things} {now_do} {q} have?
How many {things} {now_do} {q} have all together?''')

HOW_EACH = lines('''How many {things} does each of them get?
How many does each one get?
How many {things} does everyone get?
How many are there for each?
How many {things} is that for each?
What does each of them get?
How many {things} per person?
How large is one share?
[Tell me|Say] how many {things} each one gets.
How many {things} can each of them have?
How big is each share?
One share has how many {things}?''')

HOW_IN_EACH = lines('''How many {things} does each hold?
How many are there in each one?
How many {things} are that in each?
How many {things} does one of them hold?
[Tell me|Say] how many {things} each one has.
How many {things} does each have?
What number of {things} is in each of them?
How many does one of them have?
Each one has how many {things}?''')

HOW_PACKS = lines('''How many {boxes} is that?
How many {boxes} {now_do} {q} need?
How many {boxes} are there in the end?
How many {boxes} get full?
[Tell me|Say] how many {boxes} that makes.
How many {boxes} {now_do} {q} have then?
What number of {boxes} is needed?
How many {boxes} does that make?
How many full {boxes} are there?
Into how many {boxes} do they go?''')

UNTIL = lines('''How many more {things} {now_do} {q} need to have {n}?
How many {things} are missing to make it {n}?
{q} {now_want} {n} {things}. How many are still missing?
How many more until {q} {now_have} {n}?
The goal is {n}. How many {things} are still missing?
How many {things} short of {n} is that?
Now {q} {now_need} {n} {things} in all. How many must {q} still get?
How many more must {q} find to reach {n}?
[Up to|Until] {n}, how many {things} are missing?
If {q} {now_want} {n} of them, how many more does that take?''')


def own(rng):
    """Goods that somebody has, gets and gives away."""

    goods, boxes, eaten = rng.choice(GOODS)
    story = Story(rng)
    things, box = rng.choice(goods), rng.choice(boxes.split())
    fixed = dict(things=things, box=box, boxes=plural(box), a_box=one(box))

    if rng.random() < 0.35:
        m, k = rng.randint(2, 9), rng.randint(3, 12)
        n, done = work('*', m, k)
        story.tell(GROUPS, joined(done), m=m, k=k, **fixed)
    else:
        n = start(rng)
        story.tell(HAVE, [f'{n}.'], n=n, **fixed)

    kinds = []
    story.noise(NOISE, 0.12)

    for i in range(rng.choice((1, 1, 2, 2, 3))):
        n = change(rng, story, n, eaten, kinds, fixed)

        if i == 0:
            story.noise(NOISE, 0.1)

    way = rng.random()

    if way < 0.24:
        packed = rng.choice([b for b in boxes.split() if b != box])

        return shared(rng, story, n, {**fixed, 'box': packed,
                                      'boxes': plural(packed)})

    if way < 0.3 and n <= 90:
        goal = n + rng.randint(2, min(20, 100 - n))
        left, done = work('-', goal, n)
        story.ask(UNTIL, joined(done), n=goal, **fixed)

        return story.turn(MISSING, left, is_number(left), n=str(left),
                          **fixed)

    less = set(kinds) <= {'lose', 'part', 'gives'}
    more = set(kinds) <= {'gain', 'bring'}
    story.ask(HOW_MANY_LEFT if less and rng.random() < 0.8 else
              TOTAL if more and rng.random() < 0.6 else HOW_MANY, **fixed)

    return story.turn(LEFT if less else NOW, n, is_number(n), n=str(n),
                      **fixed)


def change(rng, story, n, eaten, kinds, fixed):
    """Adds an event that changes how many somebody has, and its kind to
    kinds.  Returns the number after it."""

    kind = rng.choice(('lose', 'lose', 'lose', 'gain', 'gain', 'part',
                       'times', 'bring', 'gives', 'keep'))

    if kind == 'lose' and n > 4:
        k = rng.randint(2, min(n - 2, 60))
        left, done = work('-', n, k)
        texts = rng.choice((GIVE, LOSE, EAT if eaten else GIVE))
        story.tell(texts, joined(done), n=k, **fixed)
    elif kind in ('part', 'keep'):
        f = draw(rng, 2, 5, lambda f: n % f == 0 and n // f > 1
                 and (f == 2 or rng.random() < 0.4))

        if f is None:
            return change(rng, story, n, eaten, kinds, fixed)

        k, done = work('/', n, f)
        left, more = work('-', n, k)
        left = left if kind == 'part' else k
        story.tell(PART if kind == 'part' else KEEP,
                   joined(done, more) if kind == 'part' else joined(done),
                   part=expand(rng, PARTS[f]), **fixed)
    elif kind == 'times' and n <= 33 and 'times' not in kinds:
        f = rng.choice((2, 2, 3))
        left, done = work('*', n, f)
        story.tell(TIMES, joined(done), times_it=story.given()[
            'x_double' if f == 2 else 'x_triple'], times_many=expand(
                rng, TIMES_MANY[f]), **fixed)
    elif kind in ('bring', 'gives'):
        m, k = rng.randint(2, 5), rng.randint(2, 9)
        total, done = work('*', m, k)

        if kind == 'gives' and total > n - 2 or n + total > 100:
            return change(rng, story, n, eaten, kinds, fixed)

        left, more = work('-' if kind == 'gives' else '+', n, total)
        story.tell(GIVES if kind == 'gives' else BRING, joined(done, more),
                   m=m, k=k, **fixed)
    else:
        kind = 'gain'
        k = rng.randint(2, rng.choice((12, 40)))
        left, done = work('+', n, k)
        story.tell(GAIN, joined(done), n=k, **fixed)

    kinds.append(kind)

    return left


def shared(rng, story, n, fixed):
    """Ends a story with equal shares of n things."""

    k = draw(rng, 2, 9, lambda k: n % k == 0 and n // k > 1)

    if k is None:
        story.ask(HOW_MANY, **fixed)

        return story.turn(NOW, n, is_number(n), n=str(n), **fixed)

    each, done = work('/', n, k)
    texts, asks, answers = rng.choice((
        (SHARED, HOW_EACH, EACH), (SHARED, HOW_EACH, EACH),
        (BOXED, HOW_IN_EACH, IN_EACH), (PACKED, HOW_PACKS, PACKS)))
    story.tell(texts, joined(done), k=k, **fixed)
    story.ask(asks, **fixed)

    return story.turn(answers, each, is_number(each), n=str(each), **fixed)


# ------------------------------------------------------------- who comes, goes

# things, where they are, and how they come and go, as for several of them

PLACES = Split(tuple(p.strip() for p in row.split(';')) for row in '''
passengers; on the bus; come aboard, climb in; get off, step out
passengers; on the train; come aboard, board; get off, change trains
cars; in the car park; drive in, arrive; drive off, leave
birds; on the roof; land, fly in; fly away, fly off
pigeons; on the square; land, come along; fly away, take off
children; on the playground; come, arrive; go home, leave
guests; at the party; arrive, turn up; go home, leave
sheep; in the meadow; come along, be brought in; run away, be sold
ducks; on the pond; land, arrive; fly away, swim off
pupils; in the class; join, move in; move away, change schools
fish; in the tank; be added, be put in; be given away, be taken out
boats; in the harbor; come in, sail in; sail away, go out
swimmers; in the pool; jump in, arrive; climb out, go home
players; in the team; join, sign up; leave, drop out
customers; in the shop; come in, walk in; leave, go out
planes; at the airport; land, arrive; take off, depart
trucks; at the depot; arrive, drive in; leave, drive off
bikes; in the rack; be parked there, be added; be taken, be removed
tents; on the campsite; be put up, be added; be taken down, be removed
people; in the queue; join, line up; give up, leave
cows; in the barn; come in, be brought in; go out, be sold
hens; in the yard; come out, be added; run away, go in
visitors; in the museum; come in, arrive; leave, go home
runners; in the race; join, start late; drop out, give up
singers; in the choir; join, be invited; leave, quit
plants; in the greenhouse; be added, be brought in; die, be sold
messages; in the inbox; come in, arrive; be deleted, be removed
coats; on the rack; be hung up, be added; be taken, be picked up
books; on the shelf; be put back, be added; be borrowed, be taken away
plates; on the table; be added, be put down; be taken away, be removed
chairs; in the big room; be brought in, be added; be carried out, be removed
letters; in the mailbox; arrive, be added; be taken out, be removed
cups; in the cupboard; be put back, be added; be taken out, be removed
horses; in the stable; arrive, be brought in; be taken out, be sold
kites; in the sky; go up, rise; come down, sink
tourists; on the boat; come aboard, board; get off, go ashore
skaters; on the ice; join in, arrive; leave, go home
dancers; on the stage; come on, join in; go off, leave
students; in the library; come in, arrive; leave, go home
workers; on the building site; arrive, join in; leave, go home
parcels; in the van; be loaded, be added; be delivered, be unloaded
rabbits; in the garden; come, hop in; hop away, run off
members; in the chess club; join, sign up; leave, quit
lanterns; in the tent; be added, be set up; go out, be removed
'''.strip().splitlines())

THERE_ARE = lines('''There {they_be} {n} {things} {where}
{n} {things} {they_be} {where}
At first there {they_be} {n} {things} {where}
In the morning there {they_be} {n} {things} {where}
[I|We] {they_count} {n} {things} {where}
[I|We] {they_see} {n} {things} {where}
{x} {x_count} {n} {things} {where}
{x} {x_see} {n} {things} {where}
Exactly {n} {things} {they_be} {where}
{where} there {they_be} {n} {things}
There {they_be} exactly {n} {things} {where}
The day {x_begin} with {n} {things} {where}
Somebody {x_count} {n} {things} {where}
{where} [I|we] {they_count} {n} {things}
There {they_be} already {n} {things} {where}
At noon {n} {things} {they_be} {where}
All in all there {they_be} {n} {things} {where}''')

COME = lines('''{n} more {come}
another {n} {come}
{n} more {things} {come}
{n} new ones {come}
{n} others {come}
another {n} {things} {come}
{n} {come}
{n} {things} {come}
{n} {things} {come}, too
an extra {n} {come}
{n} further {things} {come}
as many as {n} more {come}
{n} more of them {come}
{n} additional {things} {come}
at once another {n} {come}
[I|we] {they_see} that {n} more {come}''')

LEAVE = lines('''{n} of them {leave}
{n} {leave}
{n} {things} {leave}
{n} of the {things} {leave}
{n} of those {leave}
the first {n} {leave}
exactly {n} of them {leave}
{n} of these {things} {leave}
a total of {n} {leave}
{n} of them {leave} at once
{n} of all these {things} {leave}
one after the other, {n} {leave}
[I|we] {they_see} that {n} {leave}
no less than {n} {leave}''')

PART_LEAVE = lines('''{part} of them {leave}
{part} of the {things} {leave}
{part} of these {things} {leave}
at once {part} of them {leave}
{part} of all the {things} {leave}
by noon {part} of them {leave}
{part} of those {things} {leave}
one by one {part} of them {leave}
[I|we] {they_see} that {part} of them {leave}
before long {part} of the {things} {leave}
in the end {part} of them {leave}
without a word from anybody {part} of them {leave}''')

AS_MANY = lines('''the number {times_it}
the number of {things} {times_it}
before long there {they_be} {times_many}
an hour later there {they_be} {times_many}
the next day there {they_be} {times_many}
so many {come} that there {they_be} {times_many}
soon {times_many} {they_be} there
at the end of the day there {they_be} {times_many}
[I|we] {they_count} {times_many}
by noon there {they_be} {times_many}
in the evening {times_many} {they_be} {where}
suddenly there {they_be} {times_many}''')

BY_GROUP = lines('''{m} groups of {k} {come}
{m} groups with {k} {things} each {come}
{m} times {k} more {come}
on each of {m} days {k} more {come}
{k} more {come} every hour for {m} hours
in {m} groups of {k} more {things} {come}
every day for {m} days {k} {things} {come}
{m} times another {k} {things} {come}
{k} more {come}, and that {m} times
for {m} hours {k} new ones {come} each hour
{m} groups {come} with {k} {things} in each
one after the other, {m} groups of {k} {come}''')

HOW_THERE = lines('''How many {things} are there now?
How many {things} are {where} now?
How many {things} are {where} in the end?
How many are there now?
How many {things} does that make?
How many {things} is that?
[Tell me|Say] how many {things} are {where} now.
What is the number of {things} now?
[Can you say|Do you know] how many {things} are there?
How many {things} can be seen {where} after that?
{where}, how many {things} are there?
Number of {things} now?
How many {things} are {where} at the end?
Now there are how many {things}?''')

HOW_STAY = lines('''How many {things} are left?
How many {things} are still {where}?
How many stay?
How many remain {where}?
How many {things} does that leave?
How many {things} remain?
How many {things} are still there?
How many are left {where}?
[Tell me|Say] how many {things} are left.
What number of {things} is left?
{where}, how many {things} are left?
[Can you say|Do you know] how many {things} remain?
How many are still there?''')


def doing(phrases, rng, past_told):
    """Returns what several do, of phrases that begin with a verb."""

    verb, _, rest = rng.choice(phrases.split(', ')).partition(' ')

    return (Fields(I, past_told)['they_' + verb] + ' ' + rest).strip()


def there(rng):
    """People, animals or things that come to a place and leave it."""

    things, where, comes, leaves = rng.choice(PLACES)
    story = Story(rng, I)
    n = start(rng)
    fixed = dict(things=things, where=where)
    story.tell(THERE_ARE, [f'{n}.'], n=n, **fixed)
    story.noise(NOISE, 0.12)
    kinds = set()

    for _ in range(rng.choice((1, 2, 2, 3))):
        kind = rng.choice(('leave', 'leave', 'come', 'come', 'part', 'times',
                           'group'))
        fixed.update(come=doing(comes, rng, story.past),
                     leave=doing(leaves, rng, story.past))
        f = draw(rng, 2, 4, lambda f: n % f == 0 and n // f > 1)

        if kind == 'part' and f:
            k, done = work('/', n, f)
            n, more = work('-', n, k)
            story.tell(PART_LEAVE, joined(done, more),
                       part=expand(rng, PARTS[f]), **fixed)
        elif kind == 'leave' and n > 4:
            k = rng.randint(2, n - 2)
            n, done = work('-', n, k)
            story.tell(LEAVE, joined(done), n=k, **fixed)
        elif kind == 'times' and n <= 33:
            f = rng.choice((2, 2, 3))
            n, done = work('*', n, f)
            story.tell(AS_MANY, joined(done), times_it=story.given()[
                'x_double' if f == 2 else 'x_triple'], times_many=expand(
                    rng, TIMES_MANY[f]), **fixed)
        elif kind == 'group' and n <= 60:
            m, k = rng.randint(2, 5), rng.randint(2, 8)
            total, done = work('*', m, k)
            n, more = work('+', n, total)
            story.tell(BY_GROUP, joined(done, more), m=m, k=k, **fixed)
        else:
            k = rng.randint(2, rng.choice((12, 40)))
            n, done = work('+', n, k)
            kind = 'come'
            story.tell(COME, joined(done), n=k, **fixed)

        kinds.add(kind)

    less = kinds <= {'leave', 'part'}
    story.ask(HOW_STAY if less else HOW_THERE, **fixed)

    return story.turn(THERE, n, is_number(n), n=str(n), **fixed)


# -------------------------------------------------------------- a part of them

# people or things, and what some of them do, are or have

PORTIONS = Split(tuple(p.strip() for p in row.split(';')) for row in '''
children; in the club; play the violin; don't
pupils; in the class; walk to school; don't
workers; at the plant; come by bike; don't
guests; at the wedding; eat fish; don't
books; on the shelf; are novels; aren't
cars; in the street; are red; aren't
flowers; in the garden; are tulips; aren't
houses; in the village; have a garage; don't
sheep; on the farm; are black; aren't
seats; in the theater; are taken; aren't
eggs; in the carton; are brown; aren't
members; in the club; are women; aren't
windows; in the school; are broken; aren't
players; in the team; wear glasses; don't
apples; on the tree; are ripe; aren't
rooms; in the hotel; have a balcony; don't
letters; in the bag; are bills; aren't
students; on the course; speak French; don't
trees; in the park; are oaks; aren't
passengers; on the train; are asleep; aren't
boats; in the harbor; are for rent; aren't
shops; in the street; sell clothes; don't
dogs; at the shelter; are puppies; aren't
tickets; in the box; win a prize; don't
'''.strip().splitlines())

SOME = lines('''{part} of them {do}
{part} of the {things} {do}
of these, {part} {do}
{part} of all {things} {do}
exactly {part} of them {do}
{part} of these {things} {do}
[I know that|they say that|it is said that] {part} of them {do}
as many as {part} of the {things} {do}
{part} of those {things} {do}
of all the {things}, {part} {do}
about the {things} I know this: {part} of them {do}
we see that {part} of them {do}''')

HOW_SOME = lines('''How many {things} {do}?
How many of them {do}?
How many of the {things} {do}?
How many {things} is that?
[Tell me|Say] how many {things} {do}.
How many are that?
What number of {things} is that?
How many {things} {do}, then?
[Can you say|Do you know] how many of the {things} {do}?
So how many {do}?''')

HOW_OTHERS = lines('''How many {things} {dont}?
How many of them {dont}?
How many of the {things} {dont}?
How many {things} are the others?
[Tell me|Say] how many {things} {dont}.
How many are the others?
How many others are there?
How many are the rest?
[Can you say|Do you know] how many of the {things} {dont}?
So how many {dont}?''')

FRACTION = {10: (1, 10), 20: (1, 5), 25: (1, 4), 50: (1, 2), 75: (3, 4),
            30: (3, 10), 40: (4, 10), 60: (6, 10), 70: (7, 10), 80: (8, 10),
            90: (9, 10)}


def percent(n, p):
    """Returns (p percent of n, parts of its work)."""

    times, by = FRACTION[p]
    part, done = work('/', n, by)

    if times == 1:
        return part, [done]

    part, more = work('*', part, times)

    return part, [done, more]


def fitting(rng, n):
    """Returns a percentage that has a whole result of n, or None."""

    return draw(rng, 10, 90, lambda p: p in FRACTION
                and n % FRACTION[p][1] == 0
                and (FRACTION[p][0] == 1 or rng.random() < 0.3))


def portion(rng):
    """A part of some people or things."""

    things, where, does, no = rng.choice(PORTIONS)
    story = Story(rng, I, False, steady=True)
    by_percent = rng.random() < 0.5
    n = rng.choice([n for n in range(10, 101)
                    if n % (10 if by_percent else 12) == 0
                    or n % 4 == 0 and rng.random() < 0.5])
    fixed = dict(things=things, where=where, do=does)
    story.tell(THERE_ARE, [f'{n}.'], n=n, **fixed)
    story.noise(NOISE, 0.1)

    if by_percent:
        p = fitting(rng, n)
        k, done = percent(n, p)
        part = f'{p}' + rng.choice((' percent', ' percent', '%'))
    else:
        f = draw(rng, 2, 5, lambda f: n % f == 0)
        k, done = work('/', n, f)
        done, part = [done], expand(rng, PARTS[f])

    story.tell(SOME, joined(*done), part=part, **fixed)

    if rng.random() < 0.5:
        story.ask(HOW_SOME, **fixed)
    else:
        k, done = work('-', n, k)
        story.ask(HOW_OTHERS, joined(done), dont=no, **fixed)

    return story.turn(PORTION, k, is_number(k), n=str(k), **fixed)


# -------------------------------------------------------- the same, in a hurry

SHORT = {
    'start': lines('''{n} {things}
{n} {things} at first
{n} {things} in {a_box}
start: {n} {things}
I have {n} {things}
given: {n} {things}
{n} {things} here
{n} {things} in all
say {n} {things}
got {n} {things}'''),
    '-': lines('''{n} {eaten}
minus {n}
{n} of them {eaten}
{n} lost
{n} gone
{n} given away
{n} sold
{n} of them broken
take away {n}
without {n} of them
{n} less
then {n} used up'''),
    '+': lines('''{n} more
plus {n}
another {n}
{n} found
{n} new ones
{n} more bought
then {n} more
{n} added
and {n} more
{n} more from a friend
plus {n} from my sister
{n} extra'''),
    '*': lines('''times {n}
and that {n} times
{n} days in a row
{n} times over
{n} bags like that
the same for each of {n} people
{n} boxes of those
multiplied by {n}
every day, {n} days
in each of {n} rooms
for {n} people each'''),
    '/': lines('''shared by {n}
split evenly by {n} people
for {n} children, evenly
divided by {n}
in {n} equal parts
{n} friends, equal shares
among {n} people
everyone of {n} gets the same
equally in {n} bags
shared fairly by {n} kids
{n} equal piles
by {n} people''')}

HOW_SHORT = lines('''how many now
how many
how many is that
total
result
and now
how many {things}
what do I have
how many in the end
so how many
what is it now
answer''')


def short(rng):
    """A story without verbs."""

    goods, boxes, eaten = rng.choice(GOODS)
    story = Story(rng, I, False, False)
    n = start(rng)
    fixed = dict(things=rng.choice(goods), a_box=one(rng.choice(
        boxes.split())),
                 eaten='eaten' if eaten else 'stolen')
    clauses = [('start', [f'{n}.'], n)]

    events = rng.choice((1, 2, 2, 3))

    for i in range(events):
        op = rng.choice('*-+' if i == 0 else '--++/' if i == events - 1
                        else '-+')
        k = draw(rng, 2, 9, lambda k: n % k == 0 and n // k > 1)

        if op == '-' and n < 5 or op == '*' and n > 15 or op == '/' and not k:
            op = '+'

        k = rng.randint(2, min(n - 2, 40)) if op == '-' else k if op == '/' \
            else rng.randint(2, 6 if op == '*' else 20)
        n, done = work(op, n, k)
        clauses.append((op, joined(done), k))

    gap = rng.choice((', ', ', ', '; ', '\n', '. '))

    for what, done, k in clauses:
        story.clauses.append(Clause(
            gap if story.clauses else '', expand(rng, rng.choice(SHORT[what])),
            story.given(n=k, **fixed), gap == '. ' or what == 'start', done))

    story.ask(HOW_SHORT, **fixed)
    story.clauses[-1].before = rng.choice((', ', '. ', '\n', ': '))
    story.clauses[-1].starts = False

    return story.turn(COMMON, n, is_number(n), n=str(n))


# -------------------------------------------------------------------- shopping

# a shop, who takes the money, and what it has: one, several, prices

SHOPS = Split((
    ('bakery', 'baker', lines('''a roll;rolls;1;3
a loaf of bread;loaves of bread;3;6
a cake;cakes;9;20
a pretzel;pretzels;1;3
a pie;pies;6;15
a muffin;muffins;2;4
a croissant;croissants;1;3
a baguette;baguettes;2;4
a tart;tarts;8;18''')),
    ('cafe', 'waiter', lines('''a coffee;coffees;2;5
a tea;teas;2;4
a hot chocolate;hot chocolates;3;5
a slice of cake;slices of cake;3;6
a sandwich;sandwiches;4;9
a soup;soups;4;8
a juice;juices;2;5
a salad;salads;5;11
a pizza;pizzas;7;14''')),
    ('market', 'seller', lines('''a melon;melons;2;5
a bag of potatoes;bags of potatoes;3;8
a cabbage;cabbages;1;3
a jar of honey;jars of honey;4;9
a basket of plums;baskets of plums;4;9
a bunch of carrots;bunches of carrots;1;3
a cheese;cheeses;5;15
a bag of nuts;bags of nuts;3;8
a box of eggs;boxes of eggs;2;5''')),
    ('bookshop', 'cashier', lines('''a novel;novels;8;18
a comic;comics;4;9
a calendar;calendars;6;14
a map;maps;5;12
a cookbook;cookbooks;12;30
a dictionary;dictionaries;15;40
a notebook;notebooks;2;6
a picture book;picture books;8;16''')),
    ('stationery shop', 'clerk', lines('''a pen;pens;1;4
a ruler;rulers;1;3
a box of crayons;boxes of crayons;3;8
a folder;folders;2;5
a pencil case;pencil cases;5;14
a glue stick;glue sticks;1;3
a pair of scissors;pairs of scissors;3;9
a pack of paper;packs of paper;4;8''')),
    ('clothes shop', 'cashier', lines('''a T-shirt;T-shirts;8;25
a scarf;scarves;10;25
a cap;caps;6;18
a jacket;jackets;35;90
a pair of socks;pairs of socks;3;8
a belt;belts;9;25
a sweater;sweaters;20;50
a pair of shoes;pairs of shoes;35;90
a raincoat;raincoats;25;60''')),
    ('hardware store', 'clerk', lines('''a hammer;hammers;9;20
a brush;brushes;3;8
a pot of paint;pots of paint;8;25
a saw;saws;10;24
a box of nails;boxes of nails;2;6
a ladder;ladders;40;95
a bucket;buckets;3;8
a lamp;lamps;15;45
a rope;ropes;5;15''')),
    ('toy shop', 'shopkeeper', lines('''a kite;kites;6;18
a ball;balls;4;15
a puzzle;puzzles;7;20
a board game;board games;15;35
a doll;dolls;10;28
a toy car;toy cars;3;9
a pack of cards;packs of cards;3;8
a teddy bear;teddy bears;9;25''')),
    ('sports shop', 'cashier', lines('''a racket;rackets;25;80
a helmet;helmets;20;60
a pair of goggles;pairs of goggles;8;20
a tent;tents;60;95
a sleeping bag;sleeping bags;30;80
a water bottle;water bottles;5;14
a football;footballs;10;30
a backpack;backpacks;25;70''')),
    ('garden center', 'cashier', lines('''a rose bush;rose bushes;8;18
a spade;spades;12;30
a watering can;watering cans;8;20
a bag of soil;bags of soil;4;9
a flower pot;flower pots;3;9
a packet of seeds;packets of seeds;1;4
a rake;rakes;10;24
a young tree;young trees;15;45''')),
    ('cinema', 'cashier', lines('''a ticket;tickets;7;14
a bag of popcorn;bags of popcorn;4;8
a lemonade;lemonades;2;5
a poster;posters;5;15
a bar of chocolate;bars of chocolate;2;4
a hot dog;hot dogs;3;6''')),
    ('museum', 'guard', lines('''a ticket;tickets;6;18
a postcard;postcards;1;2
a poster;posters;5;15
a guidebook;guidebooks;8;20
a guided tour;guided tours;5;12
a bookmark;bookmarks;1;3''')),
    ('station', 'clerk', lines('''a day ticket;day tickets;6;15
a return ticket;return tickets;12;48
a city map;city maps;3;8
a seat reservation;seat reservations;3;6
a bicycle ticket;bicycle tickets;4;9
a newspaper;newspapers;2;4''')),
    ('pet shop', 'shopkeeper', lines('''a bag of cat food;bags of cat food;6;18
a dog basket;dog baskets;20;60
a fish tank;fish tanks;35;90
a bird cage;bird cages;30;80
a ball for the dog;balls for the dog;2;6
a bag of hay;bags of hay;3;8''')),
    ('pharmacy', 'pharmacist', lines('''a toothbrush;toothbrushes;2;6
a box of plasters;boxes of plasters;3;7
a bottle of cough syrup;bottles of cough syrup;6;14
a tube of cream;tubes of cream;4;12
a thermometer;thermometers;8;25
a pack of tissues;packs of tissues;1;3'''))))

CURRENCIES = (('euros', 'euro note'), ('dollars', 'dollar bill'),
              ('pounds', 'pound note'), ('euros', 'euro note'),
              ('dollars', 'dollar bill'), ('francs', 'franc note'))
NOTES = 5, 10, 20, 50, 100

BUY = lines('''{s} {buy} {a} for {n} {cur}
{s} {pay} {n} {cur} for {a}
{s} {spend} {n} {cur} on {a}
{s} {order} {a} for {n} {cur}
{s} {take} {a} for {n} {cur}
{s} {choose} {a} for {n} {cur}
{s} {pick} out {a} for {n} {cur}
{s} {get} {a} at {n} {cur}
{s} {put} {a} for {n} {cur} in {his} basket
{s} {want} {a} for {n} {cur}
{s} {find} {a} for {n} {cur}
{a} {x_cost} {n} {cur}
At the {shop}, {a} {x_cost} {n} {cur}
The price of {a} {x_be} {n} {cur}
{s} {need} {a}, which {x_cost} {n} {cur}
On {his} bill there {x_be} {a} for {n} {cur}
{s} {go} to the {shop} and {buy} {a} for {n} {cur}
At the {shop} {s} {buy} {a} for {n} {cur}
{a} at the {shop} {x_be} {n} {cur}
For {a}, {s} {pay} {n} {cur}''')

ALSO = lines('''{s} also {buy} {a} for {n} {cur}
{s} {take} {a} for {n} {cur} as well
{s} {pay} another {n} {cur} for {a}
on {a} {s} {spend} {n} {cur} more
{s} {add} {a} for {n} {cur}
{a} for {n} {cur} {x_come} on top
{a} {x_cost} {him} another {n} {cur}
{s} {get} {a}, too, for {n} {cur}
{s} {need} {a} for {n} {cur} as well
{a} {x_come} to another {n} {cur}
{s} {see} {a} for {n} {cur} and {take} that, too
for {a} {s} {pay} another {n} {cur}
{s} {put} {a} for {n} {cur} with it
{s} {buy} {a} on top of that for {n} {cur}''')

FEES = lines('''the bag for it {x_cost} {n} {cur}
{s} {leave} a tip of {n} {cur}
the delivery {x_cost} another {n} {cur}
{s} {add} a tip of {n} {cur}
there {x_be} a fee of {n} {cur}
shipping {x_be} {n} {cur}
the parking {x_cost} {him} {n} {cur}
{n} {cur} {they_come} on top for the wrapping
{s} {pay} {n} {cur} for the bus as well
a gift box for it {x_cost} {n} {cur} more
{s} also {give} {n} {cur} for charity
{n} {cur} more {they_go} to the driver
the deposit {x_be} {n} {cur}''')

GLUED = lines('''+and {a} for {n} {cur}
+and {a} for {n}
+and {a} for another {n} {cur}
+and also {a} for {n} {cur}
+plus {a} for {n} {cur}
+plus {a} for {n}
+as well as {a} for {n} {cur}
+together with {a} for {n} {cur}
+along with {a} for {n} {cur}
+and, for {n} {cur}, {a}
+and then {a} for {n} {cur}
+besides {a} for {n} {cur}''')

SEVERAL = lines('''{s} {buy} {k} {items} at {n} {cur} each
{s} {take} {k} {items} for {n} {cur} apiece
{k} {items} {they_cost} {n} {cur} each
{s} {pay} {n} {cur} each for {k} {items}
{s} {order} {k} {items}, each {n} {cur}
{s} {get} {k} {items} and each {x_cost} {n} {cur}
{s} {put} {k} {items} in the basket, {n} {cur} each
{s} {need} {k} {items} at {n} {cur} a piece
{s} {choose} {k} {items} for {n} {cur} each
for each of {k} {items} {s} {pay} {n} {cur}
{k} times {s} {pay} {n} {cur} for {a}
on each of {k} {items} {s} {spend} {n} {cur}
{k} {items} at {n} {cur} each {they_be} on {his} list
{s} {want} {k} {items}, and one {x_cost} {n} {cur}''')

MANY_MORE = lines('''{s} also {buy} {k} {items} at {n} {cur} each
{s} {take} {k} {items} as well, {n} {cur} each
{s} {add} {k} {items} for {n} {cur} each
{k} {items} at {n} {cur} each {they_come} on top
for {k} {items} {s} {pay} another {n} {cur} each
{s} {get} {k} {items}, too, at {n} {cur} apiece
{s} {put} {k} {items} with it, each for {n} {cur}
{k} {items} {they_cost} {him} {n} {cur} each
{s} {need} {k} {items} as well, at {n} {cur} apiece
{s} {see} {items} for {n} {cur} and {take} {k}
{s} {order} {k} {items} more, {n} {cur} each
on top of that {s} {choose} {k} {items}, {n} {cur} each''')

MANY_GLUED = lines('''+and {k} {items} at {n} {cur} each
+plus {k} {items} for {n} {cur} each
+and {k} {items}, each {n} {cur}
+as well as {k} {items} at {n} {cur} apiece
+and also {k} {items} for {n} {cur} each''')

COSTS = lines('''{a} {x_cost} {n} {cur}
One {item} {x_cost} {n} {cur}
Each {item} {x_be} {n} {cur}
The price of one {item} {x_be} {n} {cur}
{items} {they_cost} {n} {cur} each
At the {shop}, {items} {they_be} {n} {cur} a piece
{s} {see} {items} for {n} {cur} each
They {they_sell} {items} at {n} {cur} apiece
For {a} the {shop} {x_want} {n} {cur}
{x} {x_sell} {items} for {n} {cur} each
The {shop} {x_have} {items} at {n} {cur} each
The {seller} {x_ask} {n} {cur} for each {item}
{s} {pay} {n} {cur} per {item}''')

TAKES = lines('''{s} {buy} {k} of them
{s} {take} {k}
{s} {need} {k}
{s} {need} {k} of them
{s} {order} {k} of them
{s} {want} {k}
{s} {get} one for each of {k} people
{s} {put} {k} of them in {his} basket
{s} {choose} {k} of them
{s} {want} one for every one of {k} children
{k} of them {they_be} on {his} list
{s} {pick} {k} of them
{s} {pay} for {k} of them
each of {k} friends {x_want} one''')

OFF = lines('''there {x_be} [a discount of {p}|{p} off]
{s} {get} {p} off
{s} {get} a discount of {p}
the {shop} {x_take} {p} off
the {seller} {x_give} {him} {p} off
a coupon {x_take} {p} off
with a coupon {s} {get} {p} off
{s} {have} a voucher for {p} off
the price {x_drop} by {p}
the price {x_be} reduced by {p}
everything {x_be} {p} cheaper [today|that day]
{his} card {x_save} {him} {p}
in the sale it {x_be} {p} cheaper
the {shop} {x_lower} the price by {p}
{p} {they_be} taken off at the till
as a regular customer {s} {save} {p}
members {they_pay} {p} less, and {s} {be} a member
the {seller} {x_let} {him} have it for {p} less''')

MORE_COST = lines('''the price {x_rise} by {p}
the price {x_go} up by {p}
the {shop} {x_add} {p} for service
{p} tax {x_come} on top
there {x_be} a tax of {p} on it
there {x_be} a fee of {p}
{s} {leave} a tip of {p}
{s} {add} a tip of {p}
a week later it {x_cost} {p} more
it {x_get} {p} dearer
{p} {they_be} added for the delivery
the {seller} {x_charge} {p} more
the service {x_cost} {p} extra''')

LESS_COST = lines('''a coupon {x_take} {n} {cur} off
{s} {get} {n} {cur} off
{s} {have} a voucher for {n} {cur}
the {seller} {x_let} {him} have it for {n} {cur} less
the {seller} {x_lower} the price by {n} {cur}
{x} {x_pay} {n} {cur} of it
the {shop} {x_take} {n} {cur} off
it {x_be} {n} {cur} cheaper [today|than usual]
the price {x_fall} by {n} {cur}
with {his} card {s} {pay} {n} {cur} less
there {x_be} a discount of {n} {cur}
{s} {save} {n} {cur} with a coupon
the {seller} {x_give} {him} {n} {cur} back for an empty bottle''')

PAYS = lines('''{s} {pay} with a {k} {note}
{s} {give} the {seller} {k} {cur}
{s} {hand} over {k} {cur}
{s} {put} {k} {cur} on the counter
{s} {hand} the {seller} a {k} {note}
the {seller} {x_get} {k} {cur} from {him}
the {seller} {x_take} a {k} {note} from {him}
{s} {have} only a {k} {note}
{s} {pull} a {k} {note} out of {his} pocket
{s} {lay} down {k} {cur}
{s} {use} a {k} {note} to pay
{s} {offer} the {seller} {k} {cur}
{s} {give} a {k} {note} to the {seller}
{s} {reach} for a {k} {note} and {pay}
{s} {pay} from {k} {cur}
a {k} {note} {x_go} over the counter''')

SPLIT_COST = lines('''{k} friends {they_share} the cost equally
{k} people {they_split} the bill evenly
the bill {x_be} split evenly {k} ways
each of {k} people {x_pay} the same part
{s} {share} the bill equally, {k} people in all
a group of {k} {x_pay} it together, everyone the same
{k} neighbors {they_divide} the cost fairly
they {they_be} {k} people and {they_share} the price evenly
it {x_be} paid by {k} people in equal parts
{k} cousins {they_pay} for it together, each the same
everybody in a family of {k} {x_pay} an equal part
the cost {x_be} divided equally among {k} people''')

HOW_COST = lines('''How much {do} {q} pay?
How much {do} {q} pay in all?
What is there to pay?
How much is that altogether?
How much is that in all?
What does that cost altogether?
How much {do} {q} spend?
What is the total?
How much money {do} {q} need?
How much is the bill?
[Tell me|Say] how much that is.
What is the price in the end?
How much does it come to?
What is the final price?
[Can you say|Do you know] how much {q} {pay}?
What do we get as the total?''')

HOW_BACK = lines('''How much change {do} {q} get?
How much {do} {q} get back?
What is the change?
How much money comes back?
How much does the {seller} give back?
What change should {q} get?
How many {cur} {do} {q} get back?
[Tell me|Say] how much comes back.
How much is the change?
What {do} {q} get back?
How much must the {seller} return?
[Can you say|Do you know] what the change is?
What change is right?
What comes back?''')

HOW_SHARE = lines('''How much does each of them pay?
What does one of them pay?
How much is it for each?
What is each one's share?
How much is one share?
What must each of them pay?
How much does everyone pay?
What is the price per person?
[Tell me|Say] what each one pays.
How much per person?
What part falls to each of them?
How much money does each of them need?''')


def offered(rng, shop, cents):
    """Returns (fields, price) of something that a shop sells."""

    a, items, low, high = rng.choice(shop).split(';')
    n = rng.randint(max(2, int(low)), max(2, int(high)))

    return dict(a=a, items=items, item=a.partition(' ')[2]), \
        n * 100 + 50 if cents else n


def amount(n, cents):
    """Returns an amount of money as people write it."""

    return n if not cents else str(n // 100) if n % 100 == 0 else price(n)


def shown(n, cents):
    return price(n) if cents else str(n)


def shopping(rng):
    """Something is bought, perhaps cheaper or dearer than its price, and paid
    with a note or by several people."""

    shop, seller, wares = rng.choice(SHOPS)
    story = Story(rng)
    cents = rng.random() < 0.2
    cur, note = rng.choice(CURRENCIES)
    fixed = dict(shop=shop, seller=seller, cur=cur, note=note)
    n = bought(rng, story, wares, cents, fixed)
    story.noise(NOISE, 0.12)
    way = rng.random()

    if way < 0.4 and not cents:
        n = reduced(rng, story, n, fixed)

    # a price alone is no sum, so that it is at least paid or shared

    alone = not any('=' in done for c in story.clauses for done in c.lines)
    way = rng.random() * (0.52 if alone else 1)
    notes = [k for k in NOTES if k > n / 100 ** cents]

    if way < 0.4 and notes and n > 1:
        k = rng.choice(notes[:2])
        n, done = work('-', k * 100 ** cents, n, cents)
        story.tell(PAYS, joined(done), k=str(k), **fixed)
        story.ask(HOW_BACK, **fixed)
        answers = BACK
    elif way < 0.52 and not cents and draw(rng, 2, 9, lambda k: n % k == 0):
        k = draw(rng, 2, 9, lambda k: n % k == 0)
        n, done = work('/', n, k)
        story.tell(SPLIT_COST, joined(done), k=k, **fixed)
        story.ask(HOW_SHARE, **fixed)
        answers = SHARE
    else:
        story.ask(HOW_COST, **fixed)
        answers = COST

    return story.turn(answers, shown(n, cents),
                      is_number(n / 100 if cents else n),
                      n=shown(n, cents), **fixed)


def pieces(rng, n, cents):
    """Returns how many of something with this price are bought."""

    return rng.randint(2, max(2, min(6, 60 * 100 ** cents // n)))


def bought(rng, story, wares, cents, fixed):
    """Tells what is bought and returns its price."""

    def first(texts, n, done, **more):
        story.tell(texts, done, n=amount(n, cents), **more, **fixed)

    item, n = offered(rng, wares, cents)
    way = rng.random()
    k = pieces(rng, n, cents)

    if way < 0.25:
        first(COSTS, n, [shown(n, cents) + '.'], **item)
        n, done = work('*', n, k, cents)
        story.tell(TAKES, joined(done), k=k, **fixed)

        return n

    if way < 0.5:
        total, done = work('*', *((n, k) if cents else (k, n)), cents)
        first(SEVERAL, n, joined(done), k=k, **item)
        n = total
    else:
        first(BUY, n, [shown(n, cents) + '.'], **item)

    for _ in range(rng.choice((0, 1, 1, 2))):
        item, m = offered(rng, wares, cents)
        m -= 50 * (cents and rng.random() < 0.3)
        before = story.clauses[-1]

        if any(c.fields.get('a') == item['a'] for c in story.clauses):
            continue

        glued = story.acted and before.text.endswith((
            'for {n} {cur}', 'for {n}', 'at {n} {cur}')) \
            and rng.random() < 0.7
        k = pieces(rng, m, cents)

        if rng.random() < 0.3:
            total, done = work('*', *((m, k) if cents else (k, m)), cents)
            texts = MANY_GLUED if glued else MANY_MORE
            n, more = work('+', n, total, cents)
            first(texts, m, joined(done, more), k=k, **item)
        elif rng.random() < 0.2:
            m = rng.randint(1, 5) * 100 ** cents + 100 ** cents
            n, done = work('+', n, m, cents)
            first(FEES, m, joined(done))
        else:
            n, done = work('+', n, m, cents)
            first(GLUED if glued else ALSO, m, joined(done), **item)

    return n


def reduced(rng, story, n, fixed):
    """Tells that something costs less or more and returns the new price."""

    p = fitting(rng, n)

    if p and rng.random() < 0.75:
        part, done = percent(n, p)
        more = rng.random() < 0.25 and p < 60
        n, last = work('+' if more else '-', n, part)
        story.tell(MORE_COST if more else OFF, joined(*done, last),
                   p=f'{p}' + rng.choice((' percent', ' percent', '%')),
                   **fixed)
    elif n > 5:
        k = rng.randint(2, min(n - 3, 20))
        n, done = work('-', n, k)
        story.tell(LESS_COST, joined(done), n=k, **fixed)

    return n


# ----------------------------------------------------------- money in a purse

MONEY_BOX = lines('''purse
wallet
piggy bank
account
cash box
jar
money box
savings book
travel fund''')

MONEY_START = lines('''{s} {have} just {n} {cur}
{s} {keep} {n} {cur} in {his} {purse}
There {they_be} {n} {cur} in {his} {purse}
In {his} {purse} there {they_be} {n} {cur}
{s} {get} {n} {cur} from {x}
{x} {x_give} {him} {n} {cur}
{s} {earn} {n} {cur}
{his} {purse} {x_hold} {n} {cur}
{s} {start} with {n} {cur}
{s} {save} {n} {cur}
{s} {take} {n} {cur} along
{s} {find} {n} {cur} in an old coat
{s} {begin} the month with {n} {cur}
{his} pocket money {x_be} {n} {cur}
{s} {win} {n} {cur}
{n} {cur} {they_be} in {his} {purse}
{s} {go} shopping with {n} {cur}
{x} {x_send} {him} {n} {cur}''')

WAGES = lines('''{s} {save} {k} {cur} a week for {m} weeks
{s} {earn} {k} {cur} an hour and {work} {m} hours
{s} {get} {k} {cur} a week, {m} weeks long
every week for {m} weeks {s} {put} {k} {cur} into {his} {purse}
{s} {put} {k} {cur} aside on each of {m} days
{s} {work} {m} hours for {k} {cur} an hour
{m} neighbors {they_pay} {him} {k} {cur} each
{s} {get} {k} {cur} for each of {m} lessons
{s} {sell} {m} drawings for {k} {cur} each
{s} {wash} {m} cars for {k} {cur} each
for {m} days {s} {earn} {k} {cur} a day
{x} {x_give} {him} {k} {cur} a month for {m} months
{m} times {s} {put} {k} {cur} into {his} {purse}
{s} {save} {k} {cur} in each of {m} months''')

SPEND = lines('''on {a} {s} {spend} {n} {cur}
{s} {buy} {a} for {n} {cur}
{s} {pay} {n} {cur} for {a}
{a} {x_cost} {him} {n} {cur}
{n} {cur} {they_go} to {x}
{s} {give} {x} {n} {cur}
{s} {lend} {x} {n} {cur}
{s} {lose} {n} {cur}
{s} {take} out {n} {cur} for {a}
{s} {pay} back {n} {cur} to {x}
{s} {donate} {n} {cur}
the ticket for the bus {x_cost} {him} {n} {cur}
[at the cinema|in a cafe|at the fair] {s} {spend} {n} {cur}
{n} {cur} {they_be} gone for {a}
{s} {use} {n} {cur} for {a}
for {a} {s} {pay} {n} {cur}
{s} {send} {n} {cur} to {x}
the phone bill {x_take} {n} {cur}
lunch {x_cost} {him} {n} {cur}
{s} {invite} {x} to lunch for {n} {cur}''')

EARN = lines('''{s} {get} {n} {cur} from {x}
{x} {x_give} {him} {n} {cur}
{x} {x_give} {him} {n} {cur} more
{s} {earn} {n} {cur}[ in the garden| with a small job|]
{s} {find} {n} {cur} [in a pocket|under the sofa|in the street]
{s} {win} {n} {cur}
{s} {sell} {a} for {n} {cur}
{x} {x_pay} back {n} {cur}
{n} {cur} {they_come} from {x}
{s} {receive} {n} {cur} for {his} birthday
{s} {add} {n} {cur}
{x} {x_pay} {him} {n} {cur} for {his} help
{s} {save} another {n} {cur}
{s} {get} {n} {cur} for an old radio
{s} {return} {a} and {get} {n} {cur} back
{s} {put} in another {n} {cur}''')

PART_SPENT = lines('''{s} {spend} {part} of it
{s} {spend} {part} of the money on {a}
{s} {give} {part} of it to {x}
{part} of the money {x_go} to {x}
{s} {lose} {part} of it
{s} {donate} {part} of the money
{part} of it {x_be} gone after a day
{s} {use} {part} of it for {a}
{s} {send} {part} of the money to {x}
{x} {x_get} {part} of it
{s} {lend} {part} of it to {x}
{part} of the money {x_go} on food''')

HOW_MONEY = lines('''How much money {now_do} {q} have now?
How much {now_do} {q} have now?
How much {now_do} {q} have left?
How much money is left?
How much is left?
How many {cur} {now_do} {q} have?
How much {now_do} {q} still have?
How much money is there in the end?
What is left?
How much remains?
How many {cur} are left?
[Tell me|Say] how much money {q} {now_have}.
What {now_do} {q} have at the end?
[Can you say|Do you know] how much {q} {now_have} now?
How much is in {his} {purse} now?
With how much money {now_do} {q} end up?''')

HOW_MISSING = lines('''How much more {now_do} {q} need for {a} at {n} {cur}?
{a} costs {n} {cur}. How much is missing?
{q} {now_want} {a} for {n} {cur}. How much more {now_do} {q} need?
How many {cur} are missing for {a} that costs {n} {cur}?
How much must {q} still save for {a} at {n} {cur}?
The goal is {n} {cur}. How much is still missing?
How much more until {q} {now_have} {n} {cur}?
How far {now_be} {q} from {n} {cur}?
If {a} costs {n} {cur}, how much is still missing?
What is still missing to make it {n} {cur}?''')


def purse(rng):
    """Money that somebody has, gets and spends."""

    _, _, wares = rng.choice(SHOPS)
    story = Story(rng)
    cur, _ = rng.choice(CURRENCIES)
    fixed = dict(cur=cur, purse=rng.choice(MONEY_BOX))

    if rng.random() < 0.35:
        m, k = rng.randint(2, 9), rng.randint(2, 12)
        n, done = work('*', m, k)
        story.tell(WAGES, joined(done), m=m, k=k, **fixed)
    else:
        n = start(rng)
        story.tell(MONEY_START, [f'{n}.'], n=n, **fixed)

    story.noise(NOISE, 0.15)

    for _ in range(rng.choice((1, 1, 2, 2, 3))):
        item, k = offered(rng, wares, False)
        f = draw(rng, 2, 4, lambda f: n % f == 0 and n // f > 1)
        way = rng.random()

        if way < 0.15 and f:
            part, done = work('/', n, f)
            n, more = work('-', n, part)
            story.tell(PART_SPENT, joined(done, more),
                       part=expand(rng, PARTS[f]), **item, **fixed)
        elif way < 0.7 and 1 < k < n - 1:
            n, done = work('-', n, k)
            story.tell(SPEND, joined(done), n=k, **item, **fixed)
        else:
            k = rng.randint(2, 20)
            n, done = work('+', n, k)
            story.tell(EARN, joined(done), n=k, **item, **fixed)

    if rng.random() < 0.15:
        item, _ = offered(rng, wares, False)
        goal = n + rng.randint(2, 30)
        n, done = work('-', goal, n)
        story.ask(HOW_MISSING, joined(done), n=goal, **item, **fixed)
        answers = MONEY
    else:
        story.ask(HOW_MONEY, **fixed)
        answers = PURSE

    return story.turn(answers, n, is_number(n), n=str(n), **fixed)


# ------------------------------------------------------------- again and again

# what is done, how much of it at a time, and what has it, if that is said

DEEDS = Split(tuple(p.strip() for p in row.split(';')) for row in '''
read; pages; 4; 20; the book
run; km; 2; 12; the course
swim; laps; 5; 20;
write; letters; 2; 6;
bake; rolls; 6; 30;
learn; words; 5; 15; the list
plant; trees; 2; 9;
wash; cars; 2; 8;
sell; tickets; 3; 20; the roll
knit; rows; 4; 20; the scarf
type; pages; 2; 9; the report
deliver; parcels; 4; 20; the list
water; plants; 4; 15;
solve; puzzles; 2; 6; the book
paint; chairs; 2; 6;
print; posters; 5; 20;
lay; bricks; 10; 40;
pick; apples; 6; 30;
sew; shirts; 2; 6;
practice; songs; 2; 6; the songbook
drink; glasses of water; 3; 8;
visit; customers; 2; 9; the list
hike; km; 5; 20; the trail
carry; boxes; 3; 12;
repair; bikes; 2; 6;
milk; cows; 4; 15;
answer; mails; 4; 20; the folder
cycle; km; 4; 20; the tour
score; points; 3; 20;
build; birdhouses; 2; 5;
row; km; 2; 9; the route
clean; windows; 4; 12; the house
'''.strip().splitlines())

A_DAY = lines('''{s} {deed} {n} {things} a day
{s} {deed} {n} {things} every day
every day {s} {deed} {n} {things}
{s} {deed} {n} {things} each morning
{s} {deed} {n} {things} per day
each day {s} {deed} {n} {things}
{s} {deed} {n} {things} every evening
in one day {s} {deed} {n} {things}
{s} {deed} {n} {things} daily
it {x_be} {n} {things} that {s} {deed} each day
{s} always {deed} {n} {things} a day
day after day {s} {deed} {n} {things}
{n} {things} a day {x_be} what {s} {deed}''')

FOR_DAYS = lines('''+for {m} days
+{m} days in a row
+over {m} days
+and that for {m} days
+during {m} days of vacation
+for {m} days in a row
+all through {m} days
+{m} days running
+for as long as {m} days
+for the next {m} days
+for all of {m} days
+for {m} days on end''')

KEPT_UP = lines('''{s} {keep} that up for {m} days
{s} {do} that on {m} days
that {x_go} on for {m} days
this {x_last} {m} days
{s} {stay} with it for {m} days
after {m} days {s} {stop}
{s} {have} {m} days for it
{s} {do} so for {m} days
there {they_be} {m} such days
{m} days {they_pass} like that
{s} {work} like this for {m} days
it {x_take} {m} days''')

EXTRA = lines('''on the last day {s} {deed} {n} more
at the end {s} {deed} another {n}
on Sunday {s} {deed} {n} [more|extra]
{x} {x_help} and {x_deed} {n} more
{s} {deed} {n} more the day after
in the end {s} {deed} an extra {n}
on the day after that {s} {deed} {n} more
{x} {x_deed} {n} for {him} as well
later {s} {deed} another {n} {things}
as an extra {s} {deed} {n} more
one day {s} even {deed} {n} more
{s} {deed} {n} more on top of that''')

AS_MUCH = lines('''{x} {x_deed} just as many
{x} {x_deed} the same
{x} {x_join} in and {x_deed} as many
{s} {do} it all twice
the same {x_happen} again the week after
{x} {x_do} the same
then it all {x_start} again and {x_end} with the same number
{s} {deed} as many again in the next days
{x} {x_help} and {x_deed} just as many
after a break {s} {do} the same again
in the week after, {s} {deed} just as many
{x} {x_keep} up and {x_deed} the same''')

IN_ALL = lines('''There {they_be} {n} {things} in all
{s} {have} {n} {things} to do
{s} {plan} {n} {things}
The plan {x_be} {n} {things}
In all it {x_be} {n} {things}
The goal {x_be} {n} {things}
{n} {things} {they_be} to be done
{s} {have} to do {n} {things}
{s} {want} to do {n} {things}
{his} goal {x_be} {n} {things}
The number of {things} to do {x_be} {n}
{s} {set} out to do {n} {things}''')

HOW_DONE = lines('''How many {things} is that?
How many {things} is that in all?
How many {things} does that make?
How many {things} is that altogether?
What is the total?
[Tell me|Say] how many {things} that is.
How many {things} are that in the end?
How many {things} {do} {q} {base}?
How many {things} {do} {q} {base} in all?
[Can you say|Do you know] how many {things} that makes?
What number of {things} is that in total?
That is how many {things}?''')

HOW_TO_GO = lines('''How many {things} are left?
How many {things} are still to be done?
How many {things} remain?
How many {things} are missing?
How many {things} are still to come?
[Tell me|Say] how many {things} are left.
How many {things} does that leave?
What number of {things} is left?
How many are left to do?
How many more {things} must it be?
[Can you say|Do you know] how many {things} remain?''')

HOW_LONG = lines('''{q} {now_want} {n} {things} in all. How many days does that take?
How many days {do} {q} need for {n} {things}?
For how many days is that if it must be {n} {things}?
After how many days {do} {q} have {n} {things}?
How long does it take for {n} {things}, in days?
In how many days is that {n} {things}?
How many days until {q} {now_have} {n} {things}?
{n} {things}, how many days is that?
How many days make {n} {things}?
For {n} {things}, how many days are needed?''')


def daily(rng):
    """Something that is done every day."""

    verb, things, low, high, whole = rng.choice(DEEDS)
    story = Story(rng, steady=True)
    forms = story.given()
    fixed = dict(things=things, base=verb, deed=forms[verb],
                 x_deed=forms['x_' + verb])
    k, m = rng.randint(int(low), int(high)), rng.randint(2, 7)
    total, done = work('*', k, m)
    way = rng.random()

    if way < 0.15 and k < 10:
        n = k * rng.randint(2, 9)
        days, done = work('/', n, k)
        story.tell(A_DAY, [f'{k}.'], n=k, **fixed)
        story.ask(HOW_LONG, joined(done), n=n, **fixed)

        return story.turn(IN_DAYS, days, is_number(days), n=str(days))

    to_go = way < 0.45

    if to_go:
        n = total + rng.randint(2, 30)
        story.tell('{whole} {x_have} {n} {things}' if whole
                   and rng.random() < 0.6 else IN_ALL, [f'{n}.'], n=n,
                   whole=whole, **fixed)
        story.tell(A_DAY, [f'{k}.'], n=k, **fixed)
        total, more = work('-', n, total)
        done = joined(done, more)
    else:
        story.tell(A_DAY, [f'{k}.'], n=k, **fixed)
        done = joined(done)

    glued = re.search('(day|daily|morning|evening)$', story.clauses[-1].text)
    story.tell(FOR_DAYS if glued and rng.random() < 0.7 else KEPT_UP, done,
               m=m, **fixed)
    story.noise(PLAIN, 0.12)

    if not to_go and rng.random() < 0.25:
        total, done = work('*', total, 2)
        story.tell(AS_MUCH, joined(done), **fixed)
    elif rng.random() < 0.35 and (not to_go or total > 4):
        k = rng.randint(2, total - 2 if to_go and total < 22 else 20)
        total, done = work('-' if to_go else '+', total, k)
        story.tell(EXTRA, joined(done), n=k, **fixed)

    story.ask(HOW_TO_GO if to_go else HOW_DONE, **fixed)

    return story.turn(GO if to_go else UNITS, total, is_number(total),
                      n=str(total), **fixed)


# ------------------------------------------------------------------ distances

GOALS = lines('''work
school
the station
the lake
the next town
the gym
the market
the library
the beach
the stadium
the farm
the office
the pool
the town hall
the hospital
the airport
the village
the castle''')

# how somebody moves, and how far at most

MODES = Split((('walk', 8), ('cycle', 25), ('drive', 60), ('run', 9),
               ('jog', 8), ('travel', 60), ('ride', 25), ('hike', 12),
               ('go', 30)))

AWAY = lines('''{s} {live} {n} km from {goal}
The way to {goal} {x_be} {n} km
It {x_be} {n} km to {goal}
From {his} home to {goal} it {x_be} {n} km
{goal} {x_be} {n} km away
{his} way to {goal} {x_be} {n} km long
{s} {have} {n} km to {goal}
Between {his} home and {goal} there {they_be} {n} km
The road to {goal} {x_be} {n} km long
{n} km {they_lie} between {his} home and {goal}
{s} {live} {n} km away from {goal}
To {goal} it {x_be} {n} km
The distance to {goal} {x_be} {n} km''')

BOTH_WAYS = lines('''{s} {move} there and back
{s} {move} there and home again
{s} {move} both ways
{s} {move} there in the morning and back in the evening
{s} {move} there and {return} the same way
{s} {move} to {goal} and back
there and back, {s} {move} all the way
{s} {move} there, and later {he} {move} back
{s} {make} the round trip
{s} {make} the trip both ways
{s} {move} there, {turn} around and {come} back
{s} {take} the same road there and back
{s} {have} to go there and back
{s} {move} there and then home''')

A_WEEK = lines('''+{m} days a week
+{m} times a week
+{m} times a month
+every day for {m} days
+on {m} days
+on each of {m} days
+{m} days in a row
+{m} times
+each day for {m} days
+on {m} mornings
{s} {do} that {m} times a week
{s} {do} so on {m} days
{m} times a month {s} {do} that
that {x_happen} {m} times a week
{s} {do} this {m} days a week''')

LEG = lines('''{s} {move} {n} km
{s} {move} {n} km [before lunch|in the morning|to the lake|to the next town]
{s} {go} {n} km by [bus|train|bike|car|boat]
The first stage {x_be} {n} km
On the first day {s} {move} {n} km
{s} {do} {n} km before the first break
From home to the bridge {s} {move} {n} km
It {x_be} {n} km to the first stop
{s} {start} early and {move} {n} km
The way to the hut {x_be} {n} km
{s} {cover} {n} km on Monday
In the first hour {s} {move} {n} km
Up to the forest it {x_be} {n} km''')

NEXT_LEG = lines('''{s} {move} another {n} km
{s} {move} {n} km more
{s} {go} another {n} km by [bus|train|bike|car|boat]
the second stage {x_be} {n} km
on the next day {s} {move} {n} km
after lunch {s} {move} {n} km
from there it {x_be} {n} km to the hotel
{s} {take} the [bus|train] for {n} km
another {n} km {they_follow}
in the afternoon {s} {move} {n} km
{n} km {they_come} after that
{s} {cover} {n} km after the break
in the next hour {s} {move} {n} km
{s} {do} {n} km in the evening''')

TOUR = lines('''The tour {x_be} {n} km long
It {x_be} {n} km to the sea
{s} {have} {n} km to go
The way home {x_be} {n} km
The trail {x_have} {n} km
{s} {plan} to do {n} km
The sign {x_say} {n} km to the border
The whole trip {x_be} {n} km
In all it {x_be} {n} km to the camp
{s} {want} to do {n} km
The route around the lake {x_be} {n} km long
From start to end it {x_be} {n} km
{s} {set} out on a trip of {n} km''')

HOW_FAR = lines('''How far is that?
How far is that in all?
How many km is that?
How many km are that altogether?
How many km {do} {q} go?
How many km does that make?
What is the whole distance?
[Tell me|Say] how many km that is.
What is the total in km?
[Can you say|Do you know] how far that is?
How long is the way in all?
How many km {do} {q} do?''')

HOW_FAR_STILL = lines('''How far is it still?
How many km are left?
How many km are still to go?
How far is it from there?
How many km remain?
How much of the way is left?
[Tell me|Say] how many km are left.
How many more km are there?
What distance is left?
[Can you say|Do you know] how far it still is?
How many km does that leave?
What is the rest of the way?''')


def distance(rng):
    """A way that is gone there and back, in stages or in part."""

    way = rng.random()
    story = Story(rng, steady=way < 0.5)
    mode, most = rng.choice(MODES)
    fixed = dict(goal=rng.choice(GOALS), move=story.given()[mode],
                 things='km')

    if way < 0.5:
        n = rng.randint(2, rng.choice((min(9, most), most)))
        story.tell(AWAY, [f'{n}.'], n=n, **fixed)
        story.noise(PLAIN, 0.1)
        n, done = work('*', n, 2)
        story.tell(BOTH_WAYS, joined(done), **fixed)

        if rng.random() < 0.65:
            m = rng.randint(2, 6)
            n, done = work('*', n, m)
            story.tell(A_WEEK, joined(done), m=m, **fixed)
    elif way < 0.75:
        n = rng.randint(3, most)
        story.tell(LEG, [f'{n}.'], n=n, **fixed)

        for _ in range(rng.choice((1, 1, 2))):
            k = rng.randint(2, most)
            n, done = work('+', n, k)
            story.tell(NEXT_LEG, joined(done), n=k, **fixed)
            story.noise(PLAIN, 0.1)
    else:
        n = rng.randint(most, min(100, 3 * most))
        story.tell(TOUR, [f'{n}.'], n=n, **fixed)
        story.noise(PLAIN, 0.1)

        for texts in (LEG, NEXT_LEG)[:rng.choice((1, 2, 2))]:
            k = rng.randint(2, max(3, n // 3))
            n, done = work('-', n, k)
            story.tell(texts, joined(done), n=k, **fixed)

        story.ask(HOW_FAR_STILL, **fixed)

        return story.turn(GO, n, is_number(n), n=str(n), **fixed)

    story.ask(HOW_FAR, **fixed)

    return story.turn(UNITS, n, is_number(n), n=str(n), **fixed)


# ------------------------------------------------------------ the time of day


def clock(t, noon):
    """Returns a time of day; noon: its hours go to 12."""

    h, m = divmod(t, 60)

    return f'{(h + 11) % 12 + 1}:{m:02} {"am" if h < 12 else "pm"}' \
        if noon else f'{h}:{m:02}'


def typed_clock(rng, t, noon):
    said = clock(t, noon)
    way = rng.random()

    if noon and way < 0.5:
        return said.replace(':00', '')

    return said.replace(' ', '') if way < 0.6 and noon else said


def typed_span(rng, m):
    """Returns a number of minutes as it is said."""

    way = rng.random()

    if m in SPANS and way < 0.4:
        return SPANS[m]

    if m >= 60 and way < 0.6:
        h, rest = divmod(m, 60)

        return f'{h} hour{"s" * (h > 1)}' + (
            f' and {rest} minutes' if rest else '')

    return f'{m} minutes'


SPANS = {15: 'a quarter of an hour', 30: 'half an hour', 60: 'an hour',
         45: 'three quarters of an hour', 90: 'an hour and a half',
         120: 'two hours', 150: 'two and a half hours', 180: 'three hours'}


def span(m):
    h, rest = divmod(m, 60)

    return ' '.join([f'{h} h'] * (h > 0) + [f'{rest} min'] * (rest > 0))


def moved(t, op, m, said, noon):
    """Returns (time, lines) of a time of day plus or minus minutes that are
    said in this way."""

    u = t + m if op == '+' else t - m
    sum_of = f'{clock(t, noon)} {op} {span(m)}'
    first = '' if said == f'{m} minutes' and m < 60 else \
        f'{said.replace("minutes", "min")} = {span(m)}. '
    hours, minutes = divmod(m, 60)
    a, b = t % 60, minutes
    over = a + b >= 60 if op == '+' else a < b
    easy = b == 0 or not over and max(a, b) <= EASY or a == 0 and op == '+'
    h = t // 60

    if easy and (hours == 0 or not noon or h // 12 == u // 60 // 12
                 and h % 12):
        return u, [f'{first}{sum_of} = {clock(u, noon)}.']

    done = []

    if b and op == '+':
        done.append(f'min {a}+{b}={a + b}')
        done += [f'{a + b}-60={a + b - 60} carry 1'] * over
    elif b:
        done.append(f'min {a}-{b}<0 {a + 60}-{b}={a + 60 - b} borrow 1'
                    if over else f'min {a}-{b}={a - b}')

    done.append(hour(h, op, [hours] * (hours > 0) + [1] * over, noon))

    return u, [first + sum_of, *done, f'{sum_of} = {clock(u, noon)}']


def hour(h, op, more, noon):
    """Returns the line of an hour plus or minus others."""

    x = (h + 11) % 12 + 1 if noon else h
    n = sum(more)
    u = h + n if op == '+' else h - n
    half = f' {"am" if u < 12 else "pm"}' if noon else ''
    left = op.join(map(str, [x, *more]))

    if not more:
        return f'h {x}{half}'

    value = x + n if op == '+' else x - n

    if noon and value > 12:
        return f'h {left}={value} {value}-12={value - 12}{half}'

    if noon and value < 1:
        return f'h {left}<1 {x + 12}{left[len(str(x)):]}={value + 12}{half}'

    return f'h {left}={value}{half}'


SHOWS = names.listed('''film, concert, lesson, match, meeting, play, exam,
lecture, show, race, party, class, church service, training session, interview,
workshop, reading, tour of the museum, ballet, festival, debate, board game
evening, magic show, cooking course''')

SHOW_AT = lines('''The {show} {x_start} at {t}
The {show} {x_begin} at {t}
At {t} the {show} {x_start}
{his} {show} {x_begin} at {t}
{s} {go} to {a_show} that {x_start} at {t}
There {x_be} {a_show} at {t}
The doors {they_open} and the {show} {x_begin} at {t}
The ticket for the {show} {x_say} {t}
The {show} {x_be} planned for {t}
The beginning of the {show} {x_be} at {t}
On Friday there {x_be} {a_show} at {t}
{s} {invite} {x} to {a_show} at {t}
At {t} {s} {sit} down for the {show}''')

SHOW_LASTS = lines('''it {x_last} {m}
it {x_take} {m}
it {x_go} on for {m}
it {x_run} for {m}
the whole thing {x_take} {m}
it {x_be} over after {m}
it {x_be} {m} long
it {x_end} {m} later
it {x_need} {m}
it {x_stop} after {m}
its length {x_be} {m}
{m} later it {x_be} over''')

SHOW_LATE = lines('''it {x_begin} {m} late
the beginning {x_be} moved back by {m}
there {x_be} a delay of {m}
a technical problem {x_cost} {m}
the start {x_be} {m} later than planned
before it can start, everybody {x_wait} for {m}
they {they_start} {m} late
an accident {x_hold} everything up for {m}
the doors {they_stay} shut for {m} more
it really {x_begin} {m} later
nothing {x_happen} for the first {m}
it {x_be} put off by {m}''')

HOW_END = lines('''When does it end?
At what time is it over?
When is it over?
What time is it then?
[Tell me|Say] when it ends.
When can everybody go home?
At what time does the {show} end?
When is the {show} over?
What time is the end?
[Can you say|Do you know] when it is over?
What does the clock show at the end?
Until when is that?
At what time can {q} leave?''')

TRIP_AT = lines('''{s} {leave} home at {t}
{his} train {x_leave} at {t}
{his} bus {x_go} at {t}
At {t} {s} {get} into the car
The ferry {x_depart} at {t}
{s} {start} at {t}
{s} {set} out at {t}
At {t} {s} {leave} {goal}
The plane {x_take} off at {t}
{s} {get} on {his} bike at {t}
{his} trip {x_begin} at {t}
{s} {take} the train at {t}
At {t} {s} {go} out of the door''')

TRIP_TAKES = lines('''the ride {x_take} {m}
the way {x_take} {him} {m}
the trip {x_last} {m}
{s} {be} on the way for {m}
{s} {need} {m} to get there
it {x_take} {m} to get there
after {m} {s} {get} there
{m} later {s} {be} there
the whole way {x_take} {m}
{s} {travel} for {m}
the journey {x_last} {m}
{s} {arrive} after {m}
{s} {spend} {m} on the way''')

TRIP_STOPS = lines('''there {x_be} a stop of {m}
a traffic jam {x_cost} {m}
{s} {have} to wait {m} on the way
there {x_be} a delay of {m}
{s} {have} a rest of {m}
the departure {x_be} {m} late
on the way {s} {wait} {m} for a friend
{s} {lose} {m} in a queue
a detour {x_cost} {him} {m}
{s} {stop} for {m}
changing trains {x_take} {m}
a break {x_last} {m}''')

HOW_ARRIVE = lines('''When {do} {q} arrive?
At what time {do} {q} get there?
When {do} {q} get there?
What time is it then?
[Tell me|Say] when {q} {arrive}.
At what time does the trip end?
When {do} {q} reach the goal?
What is the time of arrival?
[Can you say|Do you know] when {q} {arrive}?
What does the clock show on arrival?
At what time is that?
By when {do} {q} get there?''')

MUST_AT = lines('''{s} {have} to be at {goal} at {t}
{s} {want} to be at {goal} at {t}
{s} {have} a date at {t}
{s} {be} expected at {goal} at {t}
{his} shift {x_begin} at {t}
{his} train {x_leave} at {t}
{s} {have} an appointment at {t}
{his} guests {they_come} at {t}
{his} party {x_start} at {t}
The doctor {x_wait} for {him} at {t}
{s} {meet} {x} at {t}
{his} lesson {x_start} at {t}
The food must be ready at {t}''')

MUST_NEED = lines('''{s} {need} {m} to get ready
before that, {s} {need} {m}
getting there {x_take} {m}
{s} {need} {m} before that
it {x_take} {him} {m} to prepare
everything before that {x_take} {m}
the preparations {they_take} {m}
{s} {plan} {m} for the way
the way there {x_take} {m}
{s} {have} to work for {m} before that
cleaning up before that {x_take} {m}
{s} {need} {m} to get everything done''')

TO_SPARE = lines('''{s} {want} to be {m} early
{s} {want} {m} to spare
{s} {like} to be {m} early
{s} {add} {m} to be safe
to be safe, {s} {plan} {m} more
{s} {want} to be ready {m} before the time
{s} {want} {m} for a coffee before that
{s} {want} a rest of {m} before that
{s} also {need} {m} to find the keys
a call before that {x_take} {m}
{s} {want} to rest for {m} before it
{s} {have} to feed the cat, which {x_take} {m}''')

HOW_BEGIN = lines('''When must {q} begin?
When must {q} start?
At what time must {q} start?
By what time must {q} begin?
When is it time to start?
What is the latest time to start?
[Tell me|Say] when {q} must start.
At what time must {q} begin?
When should {q} begin?
[Can you say|Do you know] when {q} must start?
What does the clock show when {q} must begin?
So when must {q} get going?''')

TIME_SAID = '''{n}.
At {n}.
[It is|That is|It's|That's] [at |]{n}.
[The time is|The answer is] {n}.
[It will be|That makes it] {n}.
[By the clock:|I get] {n}.'''

TIME = re.compile(
    r'(?<![\d:.])(\d{1,2})(?:[:.](\d\d))?(?![:.]?\d)\s*([ap])?', re.I)


def is_time(t, noon):
    """Returns the check of an answer: this time of day is its last."""

    def right(answer, user):
        found = TIME.findall(answer)

        if not found:
            return f'no time: {answer}'

        h, m, half = found[-1]
        h, m = int(h), int(m or 0)

        if half:
            h = h % 12 + 12 * (half in 'pP')

        if (h, m) == divmod(t, 60) or noon and not half \
                and (h % 12, m) == (t // 60 % 12, t % 60):
            return None

        return f'the time is not {clock(t, noon)}: {answer}'

    return right


def time_of_day(rng):
    """When something ends or must begin."""

    noon = rng.random() < 0.65
    op, first, then, late, asks = rng.choice((
        ('+', SHOW_AT, SHOW_LASTS, SHOW_LATE, HOW_END),
        ('+', TRIP_AT, TRIP_TAKES, TRIP_STOPS, HOW_ARRIVE),
        ('-', MUST_AT, MUST_NEED, TO_SPARE, HOW_BEGIN)))
    story = Story(rng, past=None if first is TRIP_AT else False,
                  steady=True)
    show = rng.choice(SHOWS)
    fixed = dict(show=show, a_show=one(show), goal=rng.choice(GOALS))
    t = rng.randrange(7 * 60, 19 * 60, rng.choice((5, 15, 30)))

    if op == '-':
        t += 120

    story.tell(first, [f'{clock(t, noon)}.'], t=typed_clock(rng, t, noon),
               **fixed)
    story.noise(PLAIN, 0.15)
    texts = [late] * (rng.random() < 0.4) + [then]

    for text in texts:
        m = rng.randrange(5 if text is late else 15, 60, 5) \
            if rng.random() < 0.5 or text is late \
            else rng.randrange(60, 185, 5)
        said = typed_span(rng, m)
        t, done = moved(t, op, m, said, noon)
        story.tell(text, done, m=said, **fixed)

    story.ask(asks, **fixed)

    return story.turn(TIME_SAID, clock(t, noon), is_time(t, noon),
                      n=clock(t, noon))


# -------------------------------------------------------- days of the week

EVENTS = names.listed('''exam, party, match, wedding, trip, concert, market,
meeting, festival, visit, class trip, flea market, play, race, picnic, fair''') \
    + names.EVENTS

TODAY = lines('''Today is {day}
It is {day}
It is {day} today
Now it is {day}
Today it is {day}
We have {day} today
The calendar says {day} today
This is a {day}
This {day} is a fine day
On the calendar it is {day}
Well, it is {day}
I look at the calendar: {day}''')

ON_DAY = lines('''The course {x_begin} on {day}
{s} {leave} home on {day}
The parcel {x_be} sent on {day}
{s} {fall} ill on {day}
{s} {arrive} at the hotel on {day}
{s} {borrow} a book on {day}
The work {x_begin} on {day}
On {day} {s} {begin} a hike
{s} {write} to {x} on {day}
On {day} {s} {order} a lamp
{s} {start} on {day}
{s} {see} the dentist on {day}
On {day} {s} {buy} the milk
The market {x_open} on {day}''')

DAYS_LATER = lines('''{k} days later {x} {x_come} to visit
{k} days after that the {event} {x_begin}
the {event} {x_be} {k} days later
the {event} {x_take} place {k} days after that
after {k} days {x} {x_call}
{k} days later {s} {get} a letter
an answer {x_come} {k} days later
{k} days {they_pass} before the {event}
the {event} {x_follow} after {k} days
after another {k} days there {x_be} {a_event}
{k} days later there {x_be} {a_event}
{s} {wait} {k} days for the {event}
it {x_be} {k} days from then to the {event}''')

DAYS_BEFORE = lines('''{k} days before that there {x_be} {a_event}
the {event} {x_be} {k} days earlier
the {event} {x_be} {k} days before
{k} days earlier {x} {x_call}
{x} {x_come} {k} days before that
{k} days before, {s} {meet} {x}
the {event} {x_take} place {k} days before that
{k} days earlier {s} {get} a letter
{s} {meet} {x} {k} days earlier
the {event} {x_be} over {k} days before
{k} days before that {s} {pay} for it
it {x_rain} {k} days earlier''')

WHICH_DAY = lines('''Which day is that?
What day is that?
What day of the week is that?
On which day is that?
Which day of the week is that?
[Tell me|Say] which day that is.
On what day of the week is that?
What day is it then?
[Can you say|Do you know] what day that is?
That is which day of the week?
Which weekday is that?
What weekday is it then?''')

DAY_SAID = '''{n}.
On {n}.
[It is|That is|It's] [a |]{n}.
[The day is|The answer is] {n}.
[That makes it|I count and get] {n}.
[Then it is|By my count it is] {n}.'''


def is_day(day):
    """Returns the check of an answer: this day is its last."""

    def right(answer, user):
        found = re.findall('|'.join(DAYS), answer, re.I)

        return None if found and found[-1].capitalize() == day \
            else f'the day is not {day}: {answer}'

    return right


def weekday(rng):
    """The day of the week some days later or before."""

    today = rng.random() < 0.35
    story = Story(rng, past=False if today else None, frames=False,
                  steady=True)
    at = rng.randrange(7)
    events = rng.sample(EVENTS, 2)
    story.tell(TODAY if today else ON_DAY, [f'{DAYS[at]}.'], day=DAYS[at])
    story.noise(PLAIN, 0.12)
    steps = 2 if rng.random() < 0.35 else 1

    for event in events[:steps]:
        k = rng.randint(2, 6)
        later = steps == 2 or today or rng.random() < 0.7
        way = 1 if later else -1
        done = [f'{DAYS[at]}{"+" if later else "-"}{k}',
                *(f'{j} {DAYS[(at + way * j) % 7]}' for j in range(1, k + 1))]
        at = (at + way * k) % 7
        story.tell(DAYS_LATER if later else DAYS_BEFORE, done, k=k,
                   event=event, a_event=one(event))

    story.ask(WHICH_DAY)

    return story.turn(DAY_SAID, DAYS[at], is_day(DAYS[at]), n=DAYS[at])


# ------------------------------------------------------------------------ ages

RELATIVES = names.listed('''brother, sister, cousin, best friend, niece,
nephew, neighbor, roommate, stepbrother, stepsister, pen friend, half-brother,
half-sister, partner''')

# those who are much older

ELDERS = names.listed('''mother, father, grandmother, grandfather, godmother,
godfather, stepfather, grandaunt, uncle, aunt, teacher, coach, boss, landlord,
dentist, doctor''')

YOUNG = {'she': names.listed('sister, daughter, niece, cousin, friend'),
         'he': names.listed('brother, son, nephew, cousin, friend')}

IS_OLD = lines('''{s} {be} {n} years old
{s} {be} {n}
{s} {be} {n} now
{s} {turn} {n} [today|this week]
{his} age {x_be} {n}
At the moment {s} {be} {n}
{s} {be} {n} years of age
{s} just turned {n}
Today {s} {be} {n} years old
{s} {have} the age of {n}
This year {s} {turn} {n}
{s} {be} exactly {n} years old''')

OLDER = lines('''{r} {x_be} {k} years older
{r} {x_be} {k} years older than {p}
{r} {x_be} older by {k} years
{r} {x_be} {k} years older than {p_obj}
when {p} was born, {r} was {k}
{r}, who {x_be} {k} years older, {x_live} next door
{r} was born {k} years earlier
{r} was born {k} years before {p_obj}
{r} was already {k} when {p} was born
{p} {have} {a_rel} who {x_be} {k} years older
{r} {x_be} the older one by {k} years
{r} came into the world {k} years before {p_obj}''')

YOUNGER = lines('''{r} {x_be} {k} years younger
{r} {x_be} {k} years younger than {p}
{r} {x_be} younger by {k} years
{r} {x_be} {k} years younger than {p_obj}
when {r} was born, {p} was {k}
{r}, who {x_be} {k} years younger, {x_live} next door
{r} was born {k} years later
{r} was born {k} years after {p_obj}
{p} was already {k} when {r} was born
{p} {have} {a_rel} who {x_be} {k} years younger
{r} {x_be} the younger one by {k} years
{r} came into the world {k} years after {p_obj}''')

TIMES_OLD = lines('''{r} {x_be} {times} as old
{r} {x_be} {times} as old as {p}
{r} {x_be} {times} as old as {p_obj}
{r} {x_have} {times} that age
{r} {x_be} already {times} as old
{r} {x_be} exactly {times} as old
{r} has lived {times} as long
{p} {have} {a_rel} who {x_be} {times} as old
{r}, who {x_live} next door, {x_be} {times} as old
compared with {p_obj}, {r} {x_be} {times} as old
the age of {r} {x_be} {times} that
now {r} {x_be} {times} as old''')

# of a third person, compared with the second

AGE_THAN = lines('''{r} {x_be} {k} years {word} than {p}
compared with {p}, {r} {x_be} {k} years {word}
{r} {x_be} {word} than {p} by {k} years
{r}, who {x_be} {k} years {word} than {p}, {x_live} next door
by {k} years, {r} {x_be} {word} than {p}
of the two, {r} {x_be} {k} years {word} than {p}''')

HOW_OLD = lines('''How old is {r}?
What is the age of {r}?
What age is {r}?
[Tell me|Say] how old {r} is.
[Can you say|Do you know] how old {r} is?
And how old is {r}?
So how old is {r}?
How many years old is {r}?
At what age is {r}?
The age of {r}?''')

HOW_OLD_LATER = lines('''How old will {r} be in {k} years?
How old will {r} be {k} years from now?
In {k} years, how old will {r} be?
What will be the age of {r} in {k} years?
What age will {r} be in {k} years?
[Tell me|Say] how old {r} will be in {k} years.
{k} years from now, what is the age of {r}?
How old is {r} going to be in {k} years?
When {k} years have passed, how old is {r}?
[Can you say|Do you know] how old {r} will be in {k} years?
After {k} more years, how old is {r}?
Add {k} years: how old is {r} then?''')

HOW_OLD_AGO = lines('''How old was {r} {k} years ago?
{k} years ago, how old was {r}?
What was the age of {r} {k} years ago?
What age was {r} {k} years ago?
[Tell me|Say] how old {r} was {k} years ago.
Go back {k} years: how old was {r}?
How old was {r} {k} years before today?
[Can you say|Do you know] how old {r} was {k} years ago?
{k} years earlier, how old was {r}?
{k} years back, what was the age of {r}?''')

MY_AGE_LATER = lines('''How old will I be in {k} years?
How old will I be {k} years from now?
In {k} years, how old will I be?
What will my age be in {k} years?
[Tell me|Say] how old I will be in {k} years.
How old am I going to be in {k} years?
When {k} years have passed, how old am I?
After {k} more years, what is my age?''')

MY_AGE_AGO = lines('''How old was I {k} years ago?
{k} years ago, how old was I?
What was my age {k} years ago?
[Tell me|Say] how old I was {k} years ago.
Go back {k} years: how old was I?
{k} years earlier, what was my age?
[Can you say|Do you know] how old I was {k} years ago?''')

OLD_TOGETHER = lines('''What do their ages add up to?
What is the sum of the two ages?
How old are both together?
[Tell me|Say] what both ages make.
How many years are both ages together?
Add the two ages. What do you get?
What is the total of both ages?
Both ages together, how much is that?
What do the two ages make?''')

OLD_SAID = COMMON + '''{n} years[ old|].
{n} years of age.
{R} {then} {n}.
{R} {then} {n} years old.
[That makes|That gives] {n} years.'''

YEARS_SAID = COMMON + '''{n} years.
[Together|Altogether|In all] {n} years.
[The sum is|The total is] {n}.
[They add up to|Both together are] {n} years.'''


def ages(rng):
    """The ages of one, two or three people."""

    who = of_some_age(rng)
    story = Story(rng, who, False, False, True)
    n = rng.randint(8 if who is I else 4, 40)
    story.tell(IS_OLD, [f'{who.name} {n}.'], n=n)
    story.noise(PLAIN, 0.12)
    known = [(who.name, n)]

    for rel in related(rng):
        r = f'{who.his} {rel}'
        forms = dict(r=r, a_rel=one(rel), rel=rel)
        way = rng.random()

        if known[1:]:
            forms['p'] = f'{who.his} {known[-1][0]}'
        else:
            forms.update(p=who.he, p_obj=who.him)

        if known[1:] or rel in ELDERS or way < 0.4:
            k = rng.randint(*(22, 40) if rel in ELDERS else (2, 20))
            less = known[1:] and n > k + 3 and way < 0.5 \
                and rel not in ELDERS
            texts = AGE_THAN if known[1:] else OLDER
            forms['word'] = 'younger' if less else 'older'
            n, done = work('-' if less else '+', n, k)
        elif way < 0.7 and n > 6:
            k = rng.randint(2, n - 3)
            n, done = work('-', n, k)
            texts = YOUNGER
        else:
            k = rng.choice((2, 2, 3)) if n < 30 else 2
            n, done = work('*', n, k)
            texts = TIMES_OLD
            forms['times'] = 'twice' if k == 2 else 'three times'

        story.tell(texts, called(rel, joined(done), n), k=k, **forms)
        known.append((rel, n))

    return asked_age(rng, story, known)


def of_some_age(rng):
    """Returns somebody of an age that is not clear."""

    if rng.random() < 0.25:
        return I

    he = rng.choice(('he', 'she'))

    if rng.random() < 0.75:
        name = first_name(rng, he)

        return Person(name, he, *HIS[he], name)

    kin = rng.choice(YOUNG[he])

    return Person('my ' + kin, he, *HIS[he], 'your ' + kin)


def related(rng):
    """Returns who else there is, of different words."""

    if rng.random() < 0.25:
        return [rng.choice(ELDERS)]

    return rng.sample(RELATIVES, rng.choice((0, 1, 1, 1, 2)))


def asked_age(rng, story, known):
    """Asks for an age and returns the Turn."""

    who = story.who
    way, k = rng.random(), rng.randint(2, 12)

    if len(known) == 2 and way < 0.15:
        n, done = work('+', known[0][1], known[1][1])
        story.ask(OLD_TOGETHER, joined(done))

        return story.turn(YEARS_SAID, n, is_number(n), n=str(n))

    at = len(known) - 1 if rng.random() < 0.8 else rng.randrange(len(known))
    label, n = known[at]
    own = who is I and at == 0
    r, said = who.name, who.said

    if at:
        r = f'{rng.choice((who.his, who.whose))} {label}'
        said = f'your {label}' if who is I else f"{who.said}'s {label}"

    if at and way < 0.55:
        story.ask(HOW_OLD, [f'{label} {n}.'], r=r)
        then = 'is'
    else:
        later = way < 0.75 or n < k + 3
        n, done = work('+' if later else '-', n, k)
        asks = (MY_AGE_LATER if own else HOW_OLD_LATER) if later else \
            MY_AGE_AGO if own else HOW_OLD_AGO
        story.ask(asks, called(label, joined(done), n), k=k, r=r)
        then = 'will be' if later else 'were' if own else 'was'

    return story.turn(OLD_SAID, n, is_number(n), n=str(n), R=capital(said),
                      then=then)


# ------------------------------------------------------- several who are named

# what several people have or do: the verb, the things, how many of them

CONTESTS = Split(tuple(p.strip() for p in row.split(';')) for row in '''
have; stickers; 3; 60
own; marbles; 3; 60
have; books; 5; 90
own; coins; 5; 90
have; cards; 5; 80
own; stamps; 5; 90
have; shells; 3; 60
have; sheep; 4; 60
own; hens; 3; 30
have; cousins; 2; 20
have; plants; 3; 40
own; comics; 3; 60
score; points; 5; 90
score; goals; 2; 20
read; pages; 8; 90
read; books; 2; 30
run; km; 3; 40
run; laps; 4; 30
swim; laps; 4; 40
cycle; km; 5; 90
save; euros; 5; 95
earn; dollars; 10; 95
spend; pounds; 5; 90
catch; fish; 2; 20
plant; trees; 3; 40
bake; rolls; 8; 60
sell; tickets; 5; 90
write; letters; 2; 20
pick; apples; 8; 90
collect; bottles; 8; 90
win; games; 2; 20
learn; words; 5; 60
solve; puzzles; 2; 30
build; towers; 2; 15
find; mushrooms; 4; 50
wash; cars; 2; 20
visit; countries; 2; 30
take; photos; 5; 90
print; posters; 5; 60
count; birds; 4; 60
'''.strip().splitlines())

TEAMS = lines('''the red team
the blue team
the green team
the yellow team
team A
team B
our class
the other class
the first group
the second group
the north side
the south side
the old club
the new club''')

FIRST_HAS = lines('''{a} {va} {n} {things}
{a} {va} {n} {things} in all
It {x_be} {n} {things} that {a} {va}
{a} {va} exactly {n} {things}
We know that {a} {va} {n} {things}
All in all {a} {va} {n} {things}
{a} {va} a total of {n} {things}
As for {things}, {a} {va} {n}
{n} {things} {they_be} what {a} {va}
It seems that {a} {va} {n} {things}
First: {a} {va} {n} {things}
Somebody {x_say} that {a} {va} {n} {things}''')

NEXT_HAS = lines('''{b} {vb} {n}
{b} {vb} {n} {things}
{b} {vb} {n} of them
{b} {vb} exactly {n}
it {x_be} {n} that {b} {vb}
{bs} number {x_be} {n}
{b} {vb} {n} in all
{b} {vb} a total of {n}
with {b_obj} it {x_be} {n}
as for {b_obj}, it {x_be} {n}
we know that {b} {vb} {n}
for {b_obj} it {x_be} {n}''')

WHO_MORE = lines('''Who {x_verb} more {things}, and how many more?
Who {x_verb} more, and by how many?
Who {x_verb} more {things}? How many more?
Who is ahead, and by how many {things}?
Who is ahead, and by how much?
Which of the two {x_verb} more, and what is the difference?
Who has the larger number, and how much larger is it?
[Tell me|Say] who {x_verb} more and how many more.
Who is in front and by how many?
Who {x_verb} the most, and with what lead?
[Can you say|Do you know] who {x_verb} more, and how many more?
Who leads? By how many?''')

WHO_LESS = lines('''Who {x_verb} fewer {things}, and how many fewer?
Who {x_verb} fewer, and by how many?
Who {x_verb} fewer {things}? How many fewer?
Who is behind, and by how many {things}?
Who is behind, and by how much?
Which of the two {x_verb} fewer, and what is the difference?
Who has the smaller number, and how much smaller is it?
[Tell me|Say] who {x_verb} fewer and how many fewer.
Who is behind and by how many?
[Can you say|Do you know] who {x_verb} fewer, and how many fewer?''')

HOW_MUCH_MORE = lines('''How many more {things} {did_w} {w} {verb} than {l_obj}?
How many more {did_w} {w} {verb}?
What is the difference?
How large is the difference?
By how many {things} do they differ?
What is the difference in {things}?
How many fewer {things} {did_l} {l} {verb} than {w_obj}?
[Tell me|Say] how many more {w} {vw}.
How big is the lead?
How much more is that?
How many more is that?''')

HOW_BOTH = lines('''How many {things} is that together?
How many {things} are that in all?
How many {things} is that altogether?
What is the sum?
How many {things} does that make together?
What do the numbers add up to?
What is the total?
[Tell me|Say] how many {things} that is together.
How many {things} is it for all of them?
Added up, how many {things} is that?
What is the total number of {things}?
[Can you say|Do you know] how many {things} that is in all?''')

HAS_MORE = lines('''{b} {vb} {k} more {things} than {a_obj}
{b} {vb} {k} more than {a_obj}
{b} {vb} {k} more
{bs} number {x_be} {k} higher than {as_}
compared with {a_obj}, {b} {vb} {k} more
{b} {vb} as many as {a_obj} and {k} more
with {b_obj} it {x_be} {k} more
{bs} number {x_be} {k} higher
{b} {vb} {k} {things} more than that
{bs} number {x_be} larger by {k}
we know that {b} {vb} {k} more than {a_obj}
{b} {vb} that many and {k} more''')

HAS_LESS = lines('''{b} {vb} {k} fewer {things} than {a_obj}
{b} {vb} {k} fewer than {a_obj}
{b} {vb} {k} fewer
{bs} number {x_be} {k} lower than {as_}
compared with {a_obj}, {b} {vb} {k} fewer
{b} {vb} {k} less than {a_obj}
with {b_obj} it {x_be} {k} fewer
{bs} number {x_be} {k} lower
{b} {vb} {k} {things} fewer than that
{bs} number {x_be} smaller by {k}
we know that {b} {vb} {k} fewer than {a_obj}
for {b_obj} it {x_be} {k} less''')

HAS_TIMES = lines('''{b} {vb} {times} as many {things} as {a_obj}
{b} {vb} {times} as many as {a_obj}
{b} {vb} {times} as many {things}
{b} {vb} {times} that number
compared with {a_obj}, {b} {vb} {times} as many {things}
with {b_obj} it {x_be} {times} as many as with {a_obj}
{bs} number {x_be} {times} as high
{bs} number {x_be} {times} as large as {as_}
we know that {b} {vb} {times} as many {things}
for {b_obj} it {x_be} {times} that
{b} even {vb} {times} as many {things}
{b} {vb} {times} what {a} {va}''')

# with "has", which often stands before a number of times

HAS_MULTIPLE = lines('''{b} {vb} {times} that number
{bs} number {x_be} {times} as high
{bs} number {x_be} {times} as large as {as_}
for {b_obj} it {x_be} {times} that
{b} {vb} {times} what {a} {va}
with {b_obj} it {x_be} {times} that number
compared with {a_obj}, {b} {vb} {times} the number
{b} even {vb} {times} that number
we know that {b} {vb} {times} what {a} {va}
{times} that number {x_be} what {b} {vb}
{times} what {a} {va} {x_be} {bs} number
{b} {vb} {times} that many {things}''')

HAS_HALF = lines('''{b} {vb} half as many {things} as {a_obj}
{b} {vb} half as many as {a_obj}
{b} {vb} only half as many
{b} {vb} half that number
compared with {a_obj}, {b} {vb} half as many
with {b_obj} it {x_be} half as many
{bs} number {x_be} half as high
{b} {vb} just half of that
{bs} number {x_be} half as large as {as_}
we know that {b} {vb} half as many
for {b_obj} it {x_be} half of that
{b} {vb} half as many {things}''')

# where it must be said with whom somebody is compared

THAN = lines('''{b} {vb} {much} {things} {than} {a_obj}
{b} {vb} {much} {than} {a_obj}
compared with {a_obj}, {b} {vb} {much} {things}
we know that {b} {vb} {much} {things} {than} {a_obj}
with {b_obj} it {x_be} {much} {than} with {a_obj}
compared with {a_obj}, it {x_be} {much} {things} that {b} {vb}''')

HAS_JUST = lines('''{a} {va} {n} {things}
{a} {va} exactly {n} {things}
{a} {va} a total of {n} {things}
for {a_obj} it {x_be} {n} {things}
it {x_be} {n} {things} that {a} {va}
as for {a_obj}, it {x_be} {n} {things}
with {a_obj} it {x_be} {n} {things}
we know that {a} {va} {n} {things}''')

HOW_ONE = lines('''How many {things} {did_b} {b} {verb}?
How many {did_b} {b} {verb}?
What is {bs} number?
[Tell me|Say] how many {things} {b} {vb}.
How many {things} is that for {b_obj}?
And {b}, how many {things} {did_b} {b_he} {verb}?
[Can you say|Do you know] how many {things} {b} {vb}?
How many {things} is it with {b_obj}?
What number of {things} is that for {b_obj}?
So how many {things} {did_b} {b} {verb}?''')

LEADS_SAID = '''{W}, by {n}.
{W}, {n} more.
{W} {wv} {n} more.
{W} {wv} {n} more than {l}.
[It is|That is] {w}, by {n}.
{W} {w_lead} by {n}.
{W} {w_be} ahead by {n}.'''

BEHIND_SAID = '''{W}, by {n}.
{W}, {n} fewer.
{W} {wv} {n} fewer.
{W} {wv} {n} fewer than {l}.
[It is|That is] {w}, by {n}.
{W} {w_be} {n} behind.
{W} {w_be} behind by {n}.'''

ONE_SAID = UNITS + '''
{B} {bv} {n} {things}.
{B} {bv} {n}.
{B}: {n} {things}.'''

UP = re.compile(r'more|ahead|leads?|higher|larger', re.I)
DOWN = re.compile(r'fewer|less|behind|lower|smaller', re.I)


FOR_TEAMS = 'score win run cycle collect plant sell solve build'.split()


def several(rng, verb, n):
    """Returns different people or teams."""

    found = []

    if verb in FOR_TEAMS and rng.random() < 0.4:
        return [Person(t, 'it', t, 'its', t.replace('our', 'your'))
                for t in rng.sample(TEAMS, n)]

    while len(found) < n:
        p = person(rng, True)

        if p.name.split()[-1] not in [f.name.split()[-1] for f in found]:
            found.append(p)

    return found


class Contest:
    """People who have or do different numbers of the same things."""

    def __init__(self, rng, n):
        self.verb, self.things, low, high = rng.choice(CONTESTS)
        self.low, self.high = int(low), int(high)
        self.people = several(rng, self.verb, n)
        owned = self.verb in ('have', 'own')
        self.story = Story(rng, self.people[0], False if owned else None,
                           False, True)
        self.rng = rng

    def does(self, p, past_told=None):
        return Fields(p, self.story.past if past_told is None
                      else past_told)[self.verb]

    def did(self, p):
        return Fields(p, self.story.past)['do']

    def fields(self, **people):
        """Returns the fields of people, each after a letter."""

        found = dict(things=self.things, verb=self.verb, x_verb=Fields(
            self.people[0], self.story.past)['x_' + self.verb])

        for x, p in people.items():
            found.update({x: p.name, f'v{x}': self.does(p),
                          f'{x}_obj': p.whom, f'{x}s': p.whose,
                          f'did_{x}': self.did(p), f'{x}_he': p.he})

        if 'a' in people:
            found['as_'] = 'mine' if people['a'] is I else people['a'].whose

        return found


def compared(rng):
    """Who of two has more or fewer, and by how many."""

    c = Contest(rng, 2)
    a, b = c.people
    m = rng.randint(c.low, c.high)
    n = draw(rng, c.low, c.high, lambda n: n != m)
    c.story.tell(FIRST_HAS, [f'{a.name} {m}.'], n=m, **c.fields(a=a))
    c.story.noise(PLAIN, 0.1)
    c.story.tell(NEXT_HAS, [f'{b.name} {n}.'], n=n, **c.fields(b=b))
    (low, low_who), (high, high_who) = sorted(
        [(m, a), (n, b)], key=lambda pair: pair[0])
    d, done = work('-', high, low)
    sure = [] if high <= EASY else [digits.compare(m, n)]
    way = rng.random()
    fields = c.fields(w=high_who, l=low_who)

    if way < 0.25:
        c.story.ask(HOW_MUCH_MORE, joined(done), **fields)

        return c.story.turn(DIFFER, d, is_number(d), n=str(d), **fields)

    more = way < 0.75
    who, loser = (high_who, low_who) if more else (low_who, high_who)
    order = f'{high}>{low}' if more else f'{low}<{high}'
    work_done = joined([f'{order}: {who.name}, {done[0]}', *done[1:]])
    c.story.ask(WHO_MORE if more else WHO_LESS, sure + work_done, **fields)

    return c.story.turn(
        LEADS_SAID if more else BEHIND_SAID, f'{who.name}, {d}',
        is_one_of_two(who.said, loser.said, more, d), n=str(d),
        w=who.said, W=capital(who.said), l=loser.said,
        wv=c.does(YOU if who is I else who),
        w_be=Fields(YOU if who is I else who, False)['be'],
        w_lead=Fields(YOU if who is I else who, False)['lead'])


YOU = Person('you', 'you', 'you', 'your', 'you', True)


def is_one_of_two(right, other, more, n):
    """Returns the check of an answer: it names the right one of two, and the
    number as its last."""

    def check(answer, user):
        said = answer.strip().split('\n')[-1]
        at = [position(said, who) for who in (right, other)]
        first = at[0] is not None and (at[1] is None or at[0] < at[1])
        turned = (DOWN if more else UP).search(said) is not None

        if at[0] is None or first == turned:
            return f'"{right}" is not the answer of: {said}'

        return is_number(n)(answer, user)

    return check


def position(said, who):
    """Returns where a sentence names somebody, or None."""

    m = re.search(r'(?<!\w)' + re.escape(who) + r'(?!\w)', said, re.I)

    return m and m.start()


def linked(rng):
    """The number of one follows from that of another."""

    c = Contest(rng, rng.choice((2, 2, 3)))
    a = c.people[0]
    m = rng.randint(max(4, c.low), max(8, c.high // 2))
    known = [(a, m)]

    if len(c.people) == 2 and rng.random() < 0.2:
        return known_later(rng, c, m)

    c.story.tell(FIRST_HAS, [f'{a.name} {m}.'], n=m, **c.fields(a=a))
    c.story.noise(PLAIN, 0.1)

    for b in c.people[1:]:
        a, m = known[-1]
        op, k = link(rng, m, known[1:] and c.verb == 'have')
        fields = c.fields(a=a, b=b)
        m, done = work(op, m, k)

        if known[1:]:
            much, than = said_link(c, op, k)
            c.story.tell(THAN, called(b.name, joined(done), m), much=much,
                         than=than, **fields)
        else:
            times = 'twice' if k == 2 else f'{c.story.number(k)} times'
            c.story.tell({'+': HAS_MORE, '-': HAS_LESS, '/': HAS_HALF,
                          '*': HAS_MULTIPLE if c.verb == 'have' and k > 2
                          else HAS_TIMES}[op],
                         called(b.name, joined(done), m), k=k, times=times,
                         **fields)

        known.append((b, m))

    return asked_one(rng, c, known)


def link(rng, m, double=False):
    """Returns (operator, number): what one has by what another has.  double:
    not more than twice as many."""

    way = rng.random()

    if way < 0.25 and m > 5:
        return '-', rng.randint(2, m - 2)

    if way < 0.4 and m % 2 == 0 and m > 3:
        return '/', 2

    if way < 0.7 and m <= 33:
        return '*', 2 if double else rng.choice(
            (2, 2, 3, 3 if m > 25 else 4))

    return '+', rng.randint(2, 20)


def said_link(c, op, k):
    """Returns (how much, its conjunction) of a link."""

    if op in '+-':
        return f'{c.story.number(k)} {"more" if op == "+" else "fewer"}', \
            'than'

    return 'half as many' if op == '/' else 'twice as many' if k == 2 \
        else f'{c.story.number(k)} times as many', 'as'


def known_later(rng, c, m):
    """How much more one has is said before the number of the other."""

    a, b = c.people
    op, k = link(rng, m, c.verb == 'have')
    much, than = said_link(c, op, k)
    c.story.tell(THAN, [f'{b.name} = {a.name}{op}{k}.'], much=much,
                 than=than, **c.fields(a=a, b=b))
    n, done = work(op, m, k)
    done = called(b.name, joined(done), n)
    c.story.tell(HAS_JUST, [f'{a.name} {m}, {done[0]}', *done[1:]], n=m,
                 **c.fields(a=a))

    return asked_one(rng, c, [(a, m), (b, n)])


def asked_one(rng, c, known):
    """Asks for the last number, or for all of them together."""

    b, n = known[-1]
    story = c.story

    if rng.random() < 0.35:
        total, parts = known[0][1], []

        for _, m in known[1:]:
            total, done = work('+', total, m)
            parts.append(done)

        story.ask(HOW_BOTH, joined(*parts), **c.fields())

        return story.turn(UNITS, total, is_number(total), n=str(total),
                          things=c.things)

    story.ask(HOW_ONE, [f'{b.name} {n}.'], **c.fields(b=b))

    return story.turn(ONE_SAID, n, is_number(n), n=str(n), things=c.things,
                      B=capital(b.said), bv=c.does(YOU if b is I else b))


# ------------------------------------------------------------ in proportion

# dishes: what, how much of what

DISHES = Split(tuple(p.strip() for p in row.split(';')) for row in '''
a soup; g of lentils; 60; 100
a soup; carrots; 1; 3
a stew; g of meat; 100; 200
a stew; potatoes; 2; 4
a salad; tomatoes; 1; 3
a salad; g of cheese; 30; 60
a rice dish; g of rice; 60; 100
a noodle dish; g of noodles; 80; 120
a pudding; ml of milk; 100; 200
a pudding; spoons of sugar; 1; 3
an omelet; eggs; 2; 3
a curry; g of chickpeas; 60; 100
a curry; ml of coconut milk; 50; 100
a fruit salad; bananas; 1; 2
a fruit salad; g of grapes; 40; 80
a risotto; ml of broth; 150; 250
a gratin; ml of cream; 50; 100
a gratin; g of potatoes; 150; 250
a vegetable pan; peppers; 1; 2
a lemonade; lemons; 1; 2
a punch; ml of juice; 150; 250
a bread dumpling dish; rolls; 1; 3
a porridge; g of oats; 40; 60
a dip; g of yogurt; 50; 100
'''.strip().splitlines())

FOR_SOME = lines('''{Dish} for {m} people needs {n} {what}
For {m} people, {dish} needs {n} {what}
{s} {cook} {dish} for {m} people with {n} {what}
My recipe for {dish} takes {n} {what} for {m} people
{n} {what} are enough in {dish} for {m} people
For {m} guests {s} {take} {n} {what} for {dish}
The cookbook says: {dish} for {m} people, {n} {what}
In {dish} for {m} people there are {n} {what}
With {n} {what}, {dish} is enough for {m} people
To cook {dish} for {m}, {s} {need} {n} {what}
{dish}, which serves {m}, takes {n} {what}
{m} people need {n} {what} for {dish}''')

FOR_OTHERS = lines('''{s} {want} to cook it for {k} people
today {s} {cook} for {k}
this time there are {k} people
tonight {k} guests come
{k} people are invited
{s} {need} it for {k} people
now {k} want to eat
{s} {have} {k} guests
there will be {k} people at the table
on Sunday {s} {cook} for {k} people
the family has {k} members
{s} {cook} for a group of {k}''')

HOW_NEEDED = lines('''How many {what} {do} {q} need?
How many {what} are needed?
How many {what} is that?
How many {what} does it take?
[Tell me|Say] how many {what} {q} {need}.
How many {what} must {q} take?
How many {what} must {q} buy?
What amount is needed?
How much is needed?
How much {do} {q} need?
How much must {q} take?
[Can you say|Do you know] how much {q} {need}?
What is the right amount?''')

SOME_COST = lines('''{m} {items} cost {n} {cur}
{m} {items} are {n} {cur}
For {m} {items} {s} {pay} {n} {cur}
{s} {buy} {m} {items} for {n} {cur}
{s} {pay} {n} {cur} for {m} {items}
The {shop} sells {m} {items} for {n} {cur}
{n} {cur} is the price of {m} {items}
At the {shop}, {m} {items} cost {n} {cur}
{s} {get} {m} {items} for {n} {cur}
The price of {m} {items} is {n} {cur}
With {n} {cur} {s} {get} {m} {items}
{m} {items} together cost {n} {cur}''')

OTHERS_COST = lines('''How much do {k} {items} cost?
What do {k} cost?
How much are {k} of them?
What is the price of {k} {items}?
What must {q} pay for {k}?
How much {do} {q} pay for {k} {items}?
[Tell me|Say] what {k} of them cost.
How much is that for {k}?
[Can you say|Do you know] what {k} {items} cost?
{k} {items}, how much is that?
If {q} {want} {k}, how much is it?
And what do {k} of them cost?''')


def recipe(rng):
    """An amount for some people and for more or fewer of them."""

    dish, what, low, high = rng.choice(DISHES)
    story = Story(rng, past=False, frames=False, steady=True)
    least, f = rng.randint(2, 4), rng.choice((2, 2, 3, 4))
    each = rng.randint(int(low), int(high))
    each -= each % 10 * (each > 20)
    m, k = (least, least * f) if rng.random() < 0.7 else (least * f, least)
    n = each * m
    op = '*' if k > m else '/'
    _, done = work('/', max(k, m), min(k, m))
    total, more = work(op, n, f)
    fixed = dict(dish=dish, what=what, Dish=capital(dish))
    story.tell(FOR_SOME, [f'{m} people, {n}.'], m=m, n=n, **fixed)
    story.noise(PLAIN, 0.1)
    story.tell(FOR_OTHERS, joined(done, more), k=k, **fixed)
    story.ask(HOW_NEEDED, **fixed)

    return story.turn(NEEDED_SAID, total, is_number(total), n=str(total),
                      **fixed)


NEEDED_SAID = COMMON + '''{n} {what}.
[It takes|That takes] {n} {what}.
{A} {need} {n} {what}.
[You need|The amount is] {n}.'''


def rate(rng):
    """The price of some from the price of others."""

    shop, _, wares = rng.choice(SHOPS)
    story = Story(rng, past=False, frames=False, steady=True)
    item, n = offered(rng, wares, False)
    n = min(n, rng.randint(2, 20))
    m, k = rng.sample(range(2, 10), 2)
    cur, _ = rng.choice(CURRENCIES)
    _, done = work('/', n * m, m)
    total, more = work('*', n, k)
    fixed = dict(cur=cur, shop=shop, **item)
    story.tell(SOME_COST, joined(done), m=m, n=n * m, **fixed)
    story.noise(PLAIN, 0.1)
    story.ask(OTHERS_COST, joined(more), k=k, **fixed)

    return story.turn(COST, total, is_number(total), n=str(total), **fixed)


# ------------------------------------------------------------------- measures

# what is measured: unit, start, more, less, question; of each several

MEASURES = Split(tuple(tuple(lines(p.strip().replace(' / ', '\n'))
                             for p in block.split('\n'))
                       for block in '''
liters
There {they_be} {n} liters of water in the tank / The tank {x_hold} {n} liters of water / In the tank there {they_be} {n} liters / {n} liters of water {they_be} in the tank
{s} {pour} in {n} liters / rain {x_add} {n} liters / another {n} liters {they_run} in / {n} liters more {they_come} in
{s} {take} out {n} liters / {n} liters {they_leak} out / {s} {use} {n} liters for the flowers / {n} liters {they_evaporate}
How many liters are in the tank now? / How much water is in the tank? / How many liters is that now? / How many liters are there in the end?

cm
{his} sunflower {x_be} {n} cm tall / The hedge {x_be} {n} cm high / The sunflower {x_measure} {n} cm / The height of the hedge {x_be} {n} cm
it {x_grow} {n} cm / it {x_grow} by {n} cm in a week / it {x_get} {n} cm taller / {n} cm {they_come} on top
{s} {cut} off {n} cm / the wind {x_break} off {n} cm / {s} {make} it {n} cm shorter / it {x_lose} {n} cm in a storm
How tall is it now? / How many cm is it now? / What is its height now? / How high is it in the end?

degrees
It {x_be} {n} degrees in the morning / The thermometer {x_show} {n} degrees / The day {x_begin} with {n} degrees / In the house it {x_be} {n} degrees
it {x_get} {n} degrees warmer / the temperature {x_rise} by {n} degrees / it {x_go} up by {n} degrees / it {x_warm} up by {n} degrees
it {x_get} {n} degrees colder / the temperature {x_fall} by {n} degrees / it {x_cool} down by {n} degrees / it {x_drop} by {n} degrees
How warm is it now? / How many degrees is it now? / What does the thermometer show now? / What is the temperature now?

kg
{his} dog {x_weigh} {n} kg / {his} suitcase {x_weigh} {n} kg / The sack {x_weigh} {n} kg / {n} kg {x_be} what the bag {x_weigh}
it {x_get} {n} kg heavier / {n} kg {they_come} on top / its weight {x_rise} by {n} kg / it {x_gain} {n} kg
it {x_get} {n} kg lighter / it {x_lose} {n} kg / its weight {x_fall} by {n} kg / it {x_drop} by {n} kg
How much does it weigh now? / How many kg does it weigh now? / What is its weight now? / How heavy is it now?

percent
The battery of {his} phone {x_be} at {n} percent / {his} phone {x_have} {n} percent left / The battery {x_show} {n} percent / The charge {x_be} {n} percent
{s} {charge} it by {n} percent / the charger {x_add} {n} percent / it {x_rise} by {n} percent / {n} percent {they_come} back
a call {x_take} {n} percent / it {x_drop} by {n} percent / {s} {use} up {n} percent / a film {x_cost} {n} percent
At how many percent is it now? / What does it show now? / How many percent is it now? / How many percent are there in the end?

meters
The balloon {x_be} at {n} meters / The drone {x_fly} at {n} meters / {his} kite {x_be} {n} meters up / At first the balloon {x_be} {n} meters above the ground
it {x_rise} by {n} meters / it {x_climb} {n} meters / it {x_go} up {n} meters / the wind {x_lift} it by {n} meters
it {x_sink} by {n} meters / it {x_go} down {n} meters / it {x_drop} {n} meters / it {x_come} down by {n} meters
How high is it now? / At how many meters is it now? / What is its height now? / How many meters is it above the ground?

points
{s} {have} {n} points / The score {x_be} {n} points / {s} {start} with {n} points / {n} points {they_be} on the board
{s} {win} {n} points / {s} {get} {n} points for a good answer / {n} points {they_be} added / {s} {score} {n} more
{s} {lose} {n} points / a mistake {x_cost} {n} points / {n} points {they_be} taken off / {s} {have} to give back {n} points
How many points are there now? / What is the score now? / How many points is that now? / How many points are there in the end?

floors
{s} {be} in an elevator on floor {n} / The elevator {x_be} on floor {n} / {s} {take} the elevator on floor {n} / The elevator {x_start} on floor {n}
it {x_go} up {n} floors / {n} floors up it {x_stop} / it {x_climb} {n} floors / it {x_rise} by {n} floors
it {x_go} down {n} floors / {n} floors further down it {x_stop} / it {x_sink} by {n} floors / it {x_come} down {n} floors
On which floor is it now? / Which floor is it now? / On what floor does it end up? / What floor is that?

pages
{his} report {x_have} {n} pages / The manuscript {x_have} {n} pages / The first version {x_have} {n} pages / There {they_be} {n} pages in {his} report
{s} {write} {n} more pages / {x} {x_add} {n} pages / another {n} pages {they_follow} / {s} {add} {n} pages of pictures
{s} {remove} {n} pages / {x} {x_cut} {n} pages / {n} pages {they_be} left out / {s} {throw} {n} pages away
How many pages are there now? / How long is it now, in pages? / How many pages does it have now? / How many pages are there in the end?

grams
There {they_be} {n} grams of flour in the bowl / {s} {put} {n} grams of flour into a bowl / In the bowl there {they_be} {n} grams of rice / The bowl {x_hold} {n} grams of nuts
{s} {add} {n} grams / another {n} grams {they_go} in / {s} {pour} in {n} grams more / {x} {x_put} in {n} grams
{s} {take} out {n} grams / {n} grams {they_fall} out / {s} {remove} {n} grams / {x} {x_take} {n} grams of it
How many grams are in it now? / How many grams is that now? / What does it weigh now, in grams? / How many grams are there in the end?'''.strip().split('\n\n')))

HALVED = lines('''half of it {x_be} lost
it {x_fall} to half
half of that {x_be} gone later
then only half {x_be} left
it {x_sink} to half of that
it {x_drop} to half
by noon it {x_be} only half
the number {x_fall} by half
it {x_be} cut in half
only half of it {x_stay}
it {x_be} halved
in the end it {x_be} half as much''')

DOUBLED = lines('''it {x_double}
the number {x_double}
soon it {x_be} twice that
later it {x_be} twice as much
in the end it {x_be} double
by noon it {x_be} twice as much
it {x_rise} to twice that
a while later it {x_be} the double of that
it {x_be} doubled
the value {x_double}
it {x_get} to two times that
after that it {x_be} two times as much''')


# units of what can be doubled

COUNTED = 'liters points grams pages'.split()


def measure(rng):
    """Something that is measured and gets more or less."""

    (unit,), starts, more, less, asks = rng.choice(MEASURES)
    story = Story(rng)
    most = 30 if unit in ('degrees', 'floors') else 80
    n = start(rng, most)
    story.tell(starts, [f'{n}.'], n=n)
    story.noise(PLAIN, 0.12)

    for _ in range(rng.choice((1, 2, 2, 3))):
        way = rng.random()

        if way < 0.1 and unit in COUNTED and n % 2 == 0:
            n, done = work('/', n, 2)
            story.tell(HALVED, joined(done))
        elif way < 0.2 and unit in COUNTED and n <= 50:
            n, done = work('*', n, 2)
            story.tell(DOUBLED, joined(done))
        elif way < 0.6 and n > 5:
            k = rng.randint(2, min(n - 2, 40))
            n, done = work('-', n, k)
            story.tell(less, joined(done), n=k)
        else:
            k = rng.randint(2, max(3, min(30, most - n, most // 3)))
            n, done = work('+', n, k)
            story.tell(more, joined(done), n=k)

    story.ask(asks)

    return story.turn(FLOOR if unit == 'floors' else AMOUNT, n, is_number(n),
                      n=str(n), things=unit)


# -------------------------------------------------------------------- the task

STORIES = ((own, 24), (there, 14), (portion, 5), (short, 5), (shopping, 17),
           (purse, 10), (daily, 9), (distance, 9), (time_of_day, 8),
           (weekday, 4), (ages, 9), (compared, 8), (linked, 9), (recipe, 4),
           (rate, 5), (measure, 7))


def turn(rng):
    """Returns the Turn of a story."""

    make, = rng.choices([make for make, _ in STORIES],
                        [weight for _, weight in STORIES])

    return make(rng)
