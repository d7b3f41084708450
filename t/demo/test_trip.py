# Copyright (C) The nginx-dsa authors

"""Trip planning: each request has a plan, which the tools alone can find, and
short questions about the same places have the right answers."""

import json
import random
import re
import unittest

from tasks import trip, trip_facts, trip_request, trip_short, trip_tools
from tasks.task import CHAT, DISCARD, RETAIN, Call, play
from tasks.trip_verify import verify
from train.encode import training_samples
from trip_plans import by_assistant, calls_of, choices, solved, submitted


FAMILIES = {'trip': trip, 'trip_short': trip_short, 'trip_facts': trip_facts}

# the paper, section 3.2.3

TOOLS = '''get_all_attractions_by_city get_all_cities get_all_hotels_by_city
get_all_restaurants_by_city get_city_by_attraction get_city_by_hotel
get_city_by_restaurant get_city_transport get_infos_by_attraction
get_infos_by_city get_infos_by_hotel get_infos_by_restaurant
get_inter_city_transport get_weather_by_city_date submit_result'''.split()


def make(family, seed):
    return FAMILIES[family].make(random.Random(seed))


def names_of(task):
    """Returns the names of all cities and places, from the tools' results."""

    def ask(name, **arguments):
        return json.loads(task.call(name, json.dumps(arguments)))

    names = ask('get_all_cities')['cities']

    for city in list(names):
        for kind in ('hotels', 'restaurants', 'attractions'):
            names += ask(f'get_all_{kind}_by_city', city=city)[kind]

    return names


class Gold(unittest.TestCase):

    def test_passes(self):
        for family, n in (('trip', 500), ('trip_short', 300),
                          ('trip_facts', 500)):
            for seed in range(n):
                task = make(family, seed)
                self.assertEqual(task.family, family)
                self.assertIn(RETAIN, task.modes)
                self.assertIn(DISCARD, task.modes)
                for mode in task.modes:
                    play(task, mode)

    def test_is_pure(self):
        for family in FAMILIES:
            self.assertEqual(play(make(family, 7), RETAIN),
                             play(make(family, 7), RETAIN))

    def test_uses_only_the_request_and_results(self):
        for family in FAMILIES:
            for seed in range(60):
                task = make(family, seed)
                names = names_of(task)
                seen = ''

                for m in play(task, DISCARD):
                    text = json.dumps(m)
                    if m['role'] == 'assistant':
                        for name in names:
                            self.assertTrue(name not in text or name in seen,
                                            (family, seed, name))
                    else:
                        seen += text

    def test_discard_repeats_thoughts(self):
        for family in FAMILIES:
            for seed in range(100):
                task = make(family, seed)
                kept = by_assistant(play(task, RETAIN))
                lost = by_assistant(play(task, DISCARD))
                self.assertEqual(list(map(calls_of, kept)),
                                 list(map(calls_of, lost)))
                thoughts = []

                for a, b in zip(kept, lost):
                    thoughts.append(a['reasoning_content'])
                    self.assertIn(b['reasoning_content'],
                                  ('\n'.join(thoughts), thoughts[-1]))

                # all but the last step of a plan

                if family != 'trip_facts':
                    self.assertEqual(lost[-2]['reasoning_content'],
                                     '\n'.join(thoughts[:-1]))

    def test_thoughts_are_true(self):
        compared = added = 0

        for family in FAMILIES:
            for seed in range(150):
                text = '\n'.join(m['reasoning_content'] for m in by_assistant(
                    play(make(family, seed), RETAIN)))

                for a, sign, b in re.findall(
                        r'(?<![\d.])(\d+(?:\.\d)?)([<>=])(\d+(?:\.\d)?)',
                        re.sub(r'\S*\+\S*', '', text)):
                    self.assertEqual((float(a) > float(b))
                                     - (float(a) < float(b)),
                                     {'<': -1, '=': 0, '>': 1}[sign])
                    compared += 1

                # numbers after the names are the ones that are added

                for a, b, c, d, n in re.findall(
                        r'^\D+ (\d+), \D+ (\d+)\n(?:.*\n){4}'
                        r'(\d+)\+(\d+)=(\d+)\n'
                        r'together \5 and ',
                        text, re.MULTILINE):
                    self.assertEqual((a, b, int(n)), (c, d, int(a) + int(b)))
                    added += 1

        self.assertGreater(compared, 1000)
        self.assertGreater(added, 60)

    def test_seen_cities_are_those_of_the_days(self):
        looked = 0

        for seed in range(150):
            text = '\n'.join(m['reasoning_content'] for m in by_assistant(
                play(make('trip', seed), RETAIN)))
            cities = list(dict.fromkeys(
                re.findall(r'Day \d of \d (\w+)', text)))

            for n, (seen, lines) in enumerate(re.findall(
                    r'Seen (.*?)\. Lines: (.*?)(?= Day)', text), 1):
                seen = seen.split(', ')
                self.assertEqual(seen, cities[:n])

                for city, how in re.findall(r'(\w+) (new|used)\.', lines):
                    self.assertEqual(how == 'used', city in seen)
                    looked += 1

        self.assertGreater(looked, 150)

    def test_discarding_costs(self):
        kept = lost = 0

        for seed in range(100):
            task = make('trip', seed)
            kept += sum(len(m['reasoning_content'])
                        for m in by_assistant(play(task, RETAIN)))
            lost += sum(len(m['reasoning_content'])
                        for m in by_assistant(play(task, DISCARD)))

        self.assertGreater(lost, 2 * kept)

    def test_chat_has_no_reasoning(self):
        tasks = [make('trip_facts', seed) for seed in range(100)]
        tasks = [t for t in tasks if CHAT in t.modes]
        self.assertGreater(len(tasks), 10)

        for task in tasks:
            for m in by_assistant(play(task, CHAT)):
                self.assertNotIn('reasoning_content', m)

    def test_fits(self):
        """Whole prompts in characters; a token has about 3.5."""

        for family, most in (('trip', 12200), ('trip_short', 10500),
                             ('trip_facts', 6700)):
            sizes = []

            for seed in range(300):
                task = make(family, seed)
                for mode in (RETAIN, DISCARD):
                    messages = play(task, mode)
                    sizes += [sum(len(text) for text, _ in sample)
                              for sample in training_samples(
                                  messages, task.tool_list(), mode)]

            self.assertLess(max(sizes), most, family)


class Requests(unittest.TestCase):

    def requests(self, n):
        for seed in range(n):
            days = seed % 3 + 1
            yield trip_request.make(random.Random(seed), trip.SIZES[days],
                                    days)

    def test_text_has_everything(self):
        shapes = set()

        for request, _ in self.requests(500):
            words = re.findall(r'[\w-]+(?:\.\d)?', request.text)
            said = [request.day, request.start, request.dates[0],
                    request.dates[-1], len(request.dates)]
            held = []

            for x in request.limits:
                held += [x.rating] + [n for n in (
                    x.hotel_from, x.together_under, x.ticket_under) if n]

            for n in said + held:
                self.assertIn(str(n), words, request.text)

            shapes.add(re.sub(r'\d', '#', request.text)
                       .replace(request.start, ''))

        self.assertGreater(len(shapes), 200)

    def test_limits_get_looser(self):
        for request, _ in self.requests(200):
            dear, fair, cheap = request.limits
            self.assertGreater(dear.hotel_from, fair.hotel_from)
            self.assertGreater(fair.hotel_from, cheap.hotel_from)
            self.assertEqual(cheap.hotel_from, 0)
            self.assertGreaterEqual(dear.rating, fair.rating)
            self.assertGreater(fair.rating, cheap.rating)
            self.assertLess(dear.ticket_under, fair.ticket_under)

    def test_each_of_the_limits_is_met(self):
        count = {'both': 0, 'one': 0, 'any': 0}

        for seed in range(300):
            text = json.dumps(play(make('trip', seed), RETAIN))
            kind = re.search(r': (both|one) \d.\d(, ticket)?', text)
            count['any' if kind[2] is None and kind[1] == 'one'
                  else kind[1]] += 1

        # an example of both: 'both 4.0, together 80, ticket 30'

        self.assertGreater(min(count.values()), 45, count)

    def test_half_of_the_choices_fail(self):
        """In each city half of the choices fail, and some pass."""

        for seed in range(60):
            request, world = trip_request.make(random.Random(seed),
                                               trip.SIZES[1], 1)
            for name in world.cities:
                request.start = name
                right = [verify(request, world, json.dumps([day])) is None
                         for day in choices(world, request.dates[0], name)]
                self.assertGreater(sum(right), 0)
                self.assertLessEqual(sum(right), len(right) / 2)

    def test_random_plans_fail(self):
        good = 0

        for n, (request, world) in enumerate(self.requests(300)):
            rng = random.Random(n)
            way = [request.start]

            while len(way) < len(request.dates):
                way.append(rng.choice([
                    c for c in world.cities[way[-1]].lines if c not in way]))

            plan = [rng.choice(list(choices(world, date, city)))
                    for date, city in zip(request.dates, way)]
            good += verify(request, world, json.dumps(plan)) is None

        self.assertLess(good, 150)
        self.assertGreater(good, 0)


class World(unittest.TestCase):

    def test_tools(self):
        for family in FAMILIES:
            task = make(family, 0)
            self.assertEqual(list(task.tools), TOOLS)

    def test_names_are_unique(self):
        for family in FAMILIES:
            for seed in range(100):
                names = names_of(make(family, seed))
                places = [n.split()[0] for n in names if ' ' in n]
                self.assertEqual(len(set(names)), len(names))
                self.assertEqual(len(set(places)), len(places))

    def test_lines_go_both_ways(self):
        for seed in range(100):
            _, world = trip_request.make(random.Random(seed), trip.SIZES[3],
                                         3)
            for a, city in world.cities.items():
                self.assertIn(len(city.lines), (2, 3))
                for b, line in city.lines.items():
                    self.assertEqual(world.cities[b].lines[a], line)

    def test_results(self):
        request, world, plan = solved(3, 2)
        tools = trip_tools.make(world)
        day, other = plan
        city = world.cities[day['city']]
        hotel = city.hotels[day['hotel']]

        def run(name, **arguments):
            return tools[name].run(arguments)

        self.assertEqual(run('get_all_hotels_by_city', city=day['city']),
                         {'city': day['city'],
                          'hotels': list(city.hotels)})
        self.assertEqual(
            run('get_infos_by_hotel', info_keywords=['stars', 'price'],
                hotel=day['hotel']),
            {'hotel': day['hotel'], 'stars': hotel['stars'],
             'price': hotel['price']})
        self.assertEqual(run('get_city_by_hotel', hotel=other['hotel']),
                         {'hotel': other['hotel'], 'city': other['city']})
        self.assertEqual(
            run('get_weather_by_city_date', city=day['city'],
                date=request.dates[0])['date'], request.dates[0])

        there = run('get_inter_city_transport', from_city=day['city'],
                    to_city=other['city'])
        self.assertEqual(
            there, {'from': day['city'], 'to': other['city'],
                    **city.lines[other['city']]})
        self.assertEqual(
            run('get_inter_city_transport', from_city=day['city'],
                to_city=day['city'])['by'], 'none')

        for text in ('[]', 'nonsense', json.dumps(plan)):
            self.assertEqual(run('submit_result', answer_text=text),
                             'received')

    def test_nonsense_gets_an_error(self):
        task = make('trip', 1)
        values = ['', 'Atlantis', 'price', 7, None, [], [1], ['color'],
                  [['price']], {}, True]

        for name in TOOLS:
            known = task.tools[name].function['parameters']['properties']
            for value in values:
                result = json.loads(task.call(
                    name, json.dumps({k: value for k in known})))
                if known and name != 'submit_result':
                    self.assertEqual(list(result), ['error'])

        names = names_of(task)

        for kind in ('attraction', 'city', 'hotel', 'restaurant'):
            for words in ([7], [None], ['color'], [['price']], ['']):
                for name in names:
                    result = json.loads(task.call(
                        f'get_infos_by_{kind}',
                        json.dumps({'info_keywords': words, kind: name})))
                    self.assertEqual(list(result), ['error'])


class Check(unittest.TestCase):

    def setUp(self):
        self.task = make('trip', 5)
        self.plan = json.dumps(submitted(play(self.task, RETAIN)))

    def check(self, answer, *arguments):
        calls = [Call('submit_result', a, self.task.call(
            'submit_result', json.dumps(a))) for a in arguments]
        return self.task.turns[0].check(answer, calls)

    def test_submitted_plan_decides(self):
        good, bad = {'answer_text': self.plan}, {'answer_text': '[]'}

        self.assertIsNone(self.check('Done.', good))
        self.assertEqual(self.check('Done.'), 'no plan was submitted')
        self.assertEqual(self.check(self.plan), 'no plan was submitted')
        self.assertRegex(self.check('Done.', bad), '^0 days instead of')
        self.assertRegex(self.check('Done.', good, bad), '^0 days')
        self.assertIsNone(self.check('Done.', bad, good))
        self.assertEqual(self.check(' \n', good), 'the answer is empty')

    def test_rejected_submission_is_ignored(self):
        for arguments in ({}, {'plan': self.plan},
                          {'answer_text': json.loads(self.plan)},
                          {'answer_text': self.plan, 'day': 1}):
            self.assertEqual(self.check('Done.', arguments),
                             'no plan was submitted')


class Facts(unittest.TestCase):

    def tasks(self, n):
        for seed in range(n):
            task = make('trip_facts', seed)
            answer = play(task, RETAIN)[-1]['content']
            yield task, task.turns[0], answer

    def test_wrong_answers(self):
        for task, turn, answer in self.tasks(300):
            self.assertIsNone(turn.check(answer, []))
            self.assertIsNone(turn.check('Sure! ' + answer, []))
            self.assertIsNotNone(turn.check('', []), turn.user)
            self.assertIsNotNone(turn.check('Yes.', []), turn.user)

            # 'no' is right if there is none

            if not re.match(r'No |There is no ', answer):
                self.assertIsNotNone(turn.check('I do not know.', []),
                                     turn.user)

    def test_other_numbers_and_names(self):
        numbers = names = 0

        for task, turn, answer in self.tasks(300):
            user = turn.user

            if re.search(r'how (much|many)|cost|what hour|when', user, re.I) \
                    and 'than' not in user \
                    and re.search(r' \d+[ .\w]*\.$', answer):
                other = re.sub(r'\d+(?=[^\d]*$)',
                               lambda m: str(int(m[0]) + 1), answer)
                self.assertIsNotNone(turn.check(other, []), (user, other))
                numbers += 1

            known = names_of(task)
            told = [n for n in known if n in answer and n not in user]

            if told:
                other = answer
                for name in told:
                    other = other.replace(name, 'Atlantis')
                self.assertIsNotNone(turn.check(other, []), (user, other))
                names += 1

        self.assertGreater(numbers, 30)
        self.assertGreater(names, 100)


if __name__ == '__main__':
    unittest.main()
