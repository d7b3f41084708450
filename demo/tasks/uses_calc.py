# Copyright (C) The nginx-dsa authors

"""A calculator: sums that are too long for the model, in figures and as
stories.  Any expression with the right value is accepted."""

import ast
import operator
from fractions import Fraction

from tasks import names
from tasks.api import parameter, service
from tasks.task import Text
from tasks.uses import kinds, one_of


CALCULATOR = service('a calculator', '''[calculator|calc]
[calculate|compute|evaluate] [expression|math|sum|formula|]
[math|arithmetic|number] [eval|evaluate|calculator|engine|compute]
[eval|do|solve] [math|expression|arithmetic]
[acme|office|bank|tools] [calculator|calc|math]
[expression|formula] [value|result|evaluate|solver]
[pocket|desk] calculator''',
'''[Calculates|Computes|Evaluates] [an expression|a sum|an arithmetic expression][ and returns its value|]
[Exact|Precise] arithmetic[ with + - * / and brackets|]
[A calculator|Pocket calculator][: takes an expression|, e.g. 3*(4+5)|]
Use this for [sums|anything with numbers] instead of [guessing|doing it in your head]
[Numbers in, number out.|Does the maths.] [Operators|Supports]: + - * / ( )
[Give it|Pass] a formula such as 12*8 and [get|receive] the [result|number]''', [
    parameter('expression', 'expression expr formula input math sum '
              'calculation term query equation',
              '[The|] [expression|formula][, e.g. 2*(3+4)|]'),
    parameter('precision', 'precision decimals digits', 'Decimal places',
              kind='integer', needed=False)], 'text', plain=True)

SIGNS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
         ast.Div: operator.truediv}
LONGEST = 100           # characters of an expression


def value_of(text):
    """Returns the value of an expression as a Fraction; raises
    ValueError."""

    def value(node):
        if isinstance(node, ast.Constant) \
                and type(node.value) in (int, float):
            return Fraction(str(node.value))

        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -value(node.operand)

        if isinstance(node, ast.BinOp) and type(node.op) in SIGNS:
            return SIGNS[type(node.op)](value(node.left), value(node.right))

        raise ValueError('not an expression')

    try:
        if len(text) > LONGEST:
            raise ValueError('too long')

        return value(ast.parse(text.strip(), mode='eval').body)

    except (SyntaxError, ZeroDivisionError, RecursionError,
            MemoryError) as e:
        raise ValueError(str(e)) from None


def same_value(role, wanted, value):
    try:
        return value_of(str(wanted)) == value_of(str(value).replace(
            ',', '').replace('x', '*').replace('^', '**').rstrip('= '))
    except ValueError:
        return False


def written(value):
    """Returns a Fraction in decimal notation; it must have one."""

    text = f'{float(value):.6f}'.rstrip('0').rstrip('.')
    assert Fraction(text) == value, value

    return text


def calculated(make):
    """Returns a case of a sum: make(rng) is the expression and the slots."""

    def case(rng):
        expression, slots = make(rng)
        result = written(value_of(expression))
        blank = one_of(rng, '| ')
        shown = ''.join(f'{blank}{c}{blank}' if c in '+-*/' else c
                        for c in expression)
        name, other = rng.sample(names.FIRST, 2)
        records = one_of(rng, f'{result}|{result}|= {result}|result: {result}'
                              f'|{shown} = {result}'
                              f'|json').replace('json',
                                                f'{{"result": {result}}}')

        return {**slots, 'expression': shown, 'result': result, 'name': name,
                'other': other, 'g': rng.choice(names.GOODS),
                'product': rng.choice(names.PRODUCTS),
                'city': rng.choice(names.PLACES), 'records': Text(records)}

    return case


def price(rng):
    return f'{rng.randrange(1, 900)}.{rng.randrange(100):02}'


def product(rng):
    a, b = rng.randrange(13, 9999), rng.randrange(13, 999)

    return f'{a}*{b}', dict(a=a, b=b)


def total(rng):
    a, b = rng.randrange(1000, 99999), rng.randrange(1000, 99999)

    return f'{a}+{b}', dict(a=a, b=b)


def difference(rng):
    b, a = sorted(rng.sample(range(1000, 99999), 2))

    return f'{a}-{b}', dict(a=a, b=b)


def quotient(rng):
    b, n = rng.randrange(11, 99), rng.randrange(11, 999)

    return f'{b * n}/{b}', dict(a=b * n, b=b)


def prices(rng):
    a, b = price(rng), price(rng)

    return f'{a}+{b}', dict(a=a, b=b)


def share(rng):
    a, b = rng.randrange(100, 9999), rng.randrange(1, 60)

    return f'{a}*{b}/100', dict(a=a, b=b)


def order(rng):
    a, b, c = (rng.randrange(12, 400) for _ in '123')

    return f'{a}*{b}+{c}', dict(a=a, b=b, c=c)


def bracket(rng):
    a, b, c = (rng.randrange(12, 999) for _ in '123')

    return f'({a}+{b})*{c}', dict(a=a, b=b, c=c)


ANSWERS = '''> [It is|That is|That makes] {result}.
> {result}[.|]
> [The result is|The answer is] {result}.
> {expression} = {result}
> {expression} is {result}.
> [I get|The calculator says] {result}.
> [You get|This gives] {result}.
> Result: {result}
> [Sure|OK|Here you go]: {result}.
+ {result}
'''


def calc(make, text):
    return kinds(CALCULATOR, calculated(make), '= calculate {expression}\n'
                 '@ expression\n' + text.strip('\n') + '\n' + ANSWERS, '',
                 same_value)


CALC = calc(product, '''
- What is {a} times {b}?
- {a} x {b}?
- How much is {a} * {b}?
- Multiply {a} by {b}.
- [Calculate|Compute|Work out] {a} * {b}.
- whats {a}*{b}
- I need the product of {a} and {b}.
- {a} multiplied by {b}, please.
- Can you work out {a} times {b} for me?
- {a} boxes with {b} {g} each. How many {g} are there?
- A {product} costs {a}. What do {b} of them cost?
- One ticket is {b} euros, and we need {a}. What do we pay?
- We order {a} {g} at {b} cents each. What is the price in cents?
- {name} earns {b} an hour and worked {a} hours. How much is that?
- There are {a} rows of {b} seats. How many seats in all?
- If each of the {a} people pays {b}, what comes together?
- My homework says {a} times {b}. What should I get?
- Use the calculator: {a} by {b}, multiplied.
- I can't do {a} * {b} in my head. Please do it for me.
- {name} says {a} times {b} is easy. I don't think so. What is it?
- Every day {b} letters arrive in {city}. How many is that in {a} days?
- product: {a}, {b}
- Please tell me what {b} times {a} makes.
- {a} times {b} equals what?
- The hall has {a} rows with {b} chairs in each row; total number of chairs?
''')

CALC += calc(total, '''
- What is {a} plus {b}?
- {a} + {b}?
- How much is {a} and {b} together?
- Add {a} and {b}.
- [Calculate|Compute|Work out] {a} + {b}.
- whats {a}+{b}
- I need the sum of {a} and {b}.
- Please add {b} to {a}.
- {name} has {a} {g}, {other} has {b}. How many do they have together?
- The car cost {a} and the repair {b}. What was that in all?
- We sold {a} {g} in May and {b} in June. What is the total?
- The meter was at {a} and went up by {b}. What does it show now?
- {a} people live in the old town and {b} in the new one. How many live there in all?
- Two invoices, {a} and {b}. The sum, please.
- My accounts: {a} in one, {b} in the other. How much is it in total?
- Can you sum up {a} and {b} with the calculator?
- add these pls: {a}, {b}
- First I walked {a} steps, then {b}. How many steps is that?
- {city} had {a} visitors last year and {b} this year. Together?
- I am adding up bills. What do {a} and {b} make?
- Total of {a} and {b}?
- Put together {a} and {b}.
- I need {a} plus {b}.
- {b} came on Saturday and {a} on Sunday. How many were there in both days?
- {name} collected {a} and {other} {b}. What did they collect together?
- The sum, please: {a}, {b}
- Last year {a}, this year {b}. Both years together?
''')

CALC += calc(difference, '''
- What is {a} minus {b}?
- {a} - {b}?
- How much is {a} less {b}?
- Subtract {b} from {a}.
- [Calculate|Compute|Work out] {a} - {b}.
- whats {a}-{b}
- Take {b} away from {a}.
- What is the difference between {a} and {b}?
- I had {a} and spent {b}. What do I have left?
- The budget is {a}, and {b} is gone. What remains?
- By how much is {a} more than {b}?
- The meter shows {a}. A year ago it was {b}. How much did we use?
- We printed {a} {g} and {b} are sold. How many are left?
- {name} has {a} points, {other} has {b}. How far is {name} ahead?
- From {a} we have to deduct {b}. Result?
- {a}, minus {b} for tax. What do I keep?
- Of {a} seats in the stadium of {city}, {b} are taken. How many are free?
- Please do the subtraction {a} - {b} with the calculator.
- The price fell from {a} to {b}. How much did it fall?
- Difference pls: {a} and {b}
- How many more is {a} than {b}?
- If I pay {b} of a debt of {a}, how much do I still owe?
- I need {a} less {b}.
- {city} wants {a} trees and has planted {b}. How many are missing?
- {b} of the {a} tickets are gone. How many can we still sell?
- From {b} to {a}, how far is it on a scale?
- The old car had {a} km, the new one {b}. What's the difference?
''')

CALC += calc(quotient, '''
- What is {a} divided by {b}?
- {a} / {b}?
- How much is {a} by {b}, divided?
- Divide {a} by {b}.
- [Calculate|Compute|Work out] {a} / {b}.
- whats {a}/{b}
- Split {a} into {b} equal parts. How large is one?
- How often does {b} go into {a}?
- Share {a} {g} among {b} people. How many does each get?
- {b} friends won {a} euros. What does each of them get?
- We drove {a} km in {b} hours. How many km is that per hour?
- The rent is {a} for {b} months. What is it for one?
- {a} {g} fit into {b} boxes. How many are in each box?
- {name} has to read {a} pages in {b} days. How many pages a day?
- Please divide {a} equally between {b} teams.
- {b} tickets cost {a} in all. What does one cost?
- One out of {b} gets a prize, and there are {a} visitors. How many prizes?
- I need {a} over {b}.
- Use the calculator to divide {a} by {b}.
- {a} divided into {b}: how much is each?
- {a} over {b}, please.
- How many times is {b} contained in {a}?
- A book of {a} pages in {b} days: how many pages a day?
- Our prize of {a} goes to {b} winners in equal parts. How much for one?
- {b} workers made {a} parts, all the same number. How many did each make?
''')

CALC += calc(prices, '''
- What is {a} plus {b}?
- {a} + {b}?
- I bought {g} for {a} and a {product} for {b}. What is the total?
- The {product} is {a}, shipping is {b}. What do I pay?
- Add {a} and {b}, please.
- Lunch was {a} and coffee {b}. How much was it together?
- Two receipts: {a} and {b}. Sum?
- total of {a} and {b} pls
- [Calculate|Compute] {a} + {b}.
- My bill has two lines, {a} and {b}. What is the sum?
- {name} paid {a}, {other} paid {b}. How much did they pay together?
- What do I owe if one thing costs {a} and the other {b}?
- Hotel {a}, train {b}. The total for {city}?
- How much is {a} and {b}?
- Please sum {a} and {b} for me.
- whats {a}+{b}
- Our dinner: {a} for the food, {b} for the wine. All in all?
- Please put {a} and {b} together.
- {name} lent me {a} and later {b}. How much do I owe {name}?
- The repair is {a} for parts plus {b} for work. What is the whole bill?
- In my basket there are two things, {a} and {b}. What is the total at the checkout?
- Sum of {a} and {b}, to the cent.
- Tickets to {city} {a}, and the way back {b}. Both together?
- I need to know what {a} + {b} is, exactly.
''')

CALC += calc(share, '''
- What is {b}% of {a}?
- {b} percent of {a}?
- How much is {b} percent of {a}?
- [Calculate|Compute|Work out] {b}% of {a}.
- whats {b}% of {a}
- The {product} costs {a} and I get {b}% off. How much do I save?
- I want to leave a tip of {b} percent on {a}. How much is the tip?
- The rent of {a} goes up by {b}%. How much more is that?
- The tax on {a} is {b}%. How much tax do I pay?
- My bank pays {b}% interest on {a}. What do I get?
- {name} gets {b} percent of the {a} that we earned. How much does {name} get?
- Take {b}% of {a}.
- I need {b} percent from {a}, exactly.
- A discount of {b}% on {a}: how much money is the discount?
- The commission is {b}% on sales of {a}. Commission in euros?
- pls tell me {b}% of {a}
- We put {b} per cent of our {a} into savings. How much goes there?
- The fee is {b}% and the amount {a}. What is the fee?
- Exactly {b} percent of {a}, please.
- If prices of {a} rise by {b} percent, by how much is that?
- {name} wants {b}% of {a}. Which amount is it?
- My share is {b}% and the whole is {a}. What do I get?
- How large is a deposit of {b}% if the price is {a}?
- Work out what {b} per cent of {a} comes to.
- A {product} of {a} euros, {b}% less. How much cheaper is it?
''')

CALC += calc(order, '''
- What is {a} * {b} + {c}?
- {a} times {b} plus {c}?
- Multiply {a} by {b} and add {c}.
- [Calculate|Compute|Work out] {a}*{b}+{c}.
- {a} {g} at {b} each, and {c} for shipping. What is the total?
- I rent a car for {a} days at {b} a day and pay {c} for insurance. How much is it in all?
- We need {a} chairs at {b} euros and one table for {c}. The sum, please.
- {name} worked {a} hours at {b} an hour and got a bonus of {c}. What is that together?
- I save {b} a month for {a} months and already have {c}. How much do I have then?
- {a} rows of {b} seats and {c} more places to stand. How many people fit in?
- Hotel in {city}: {a} nights, {b} each, plus {c} for breakfast. Total?
- evaluate {a}*{b}+{c} pls
- Take {a}, multiply it by {b}, then add {c}. What do you get?
- Each of {a} boxes weighs {b} kg, and the pallet weighs {c} kg. What's the total weight?
- What comes out of {a}*{b}+{c}?
- First {a} times {b}, then plus {c}.
- {b} a month for {a} months and {c} once. What do I pay in total?
- There are {a} bags of {b} {g} and {c} loose {g}. How many {g} in all?
- {a} people at {b} euros, plus {c} for the hall: the total?
- {name} drives {b} km a day for {a} days, then {c} km more. How far is that?
- I'd like to know {a} * {b} + {c}.
- {c} plus {a} times {b}, please.
- The job takes {a} hours at {b} an hour, material is {c}. What will it cost?
''')

CALC += calc(bracket, '''
- What is ({a} + {b}) * {c}?
- Add {a} and {b}, then multiply by {c}.
- [Calculate|Compute|Work out] ({a}+{b})*{c}.
- {name} has {a} {g} and {other} has {b}. Each costs {c} cents. What are all of them worth in cents?
- A ticket is {a} and the meal {b}. What do {c} people pay in all?
- The sum of {a} and {b}, times {c}?
- evaluate ({a}+{b})*{c} pls
- Rent is {a} and heating {b} a month. What is that for {c} months?
- Take {a} plus {b} and multiply the sum by {c}.
- For each of {c} guests I need {a} for food and {b} for drinks. How much money in all?
- {c} times the sum of {a} and {b}, please.
- What comes out of ({a}+{b})*{c}?
- We pay {a} to {name} and {b} to {other} each month. How much is it after {c} months?
- A night in {city} is {a}, plus {b} for breakfast. We stay {c} nights. Total?
- ({a}+{b}) times {c}?
- whats ({a} + {b}) * {c}
- {a} and {b} together, {c} times over. How much is it?
- Every day we sell {a} {g} in the morning and {b} at night. How many in {c} days?
- Per month {a} for the car and {b} for fuel. What is it for {c} months?
- {c} boxes, each with {a} red and {b} green {g}. How many {g} in all?
- First add {a} to {b}. Multiply what you get by {c}.
- Each of {c} houses has {a} windows in front and {b} behind. How many windows?
''')
