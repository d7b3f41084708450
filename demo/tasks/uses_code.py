# Copyright (C) The nginx-dsa authors

"""Services of computers: a shell (uses_shell.py), a calculator (uses_calc.py),
what programmers have (uses_team.py), and a database, which the model queries in
SQL or by a filter."""

import json
import sqlite3

from tasks import names
from tasks.api import parameter, service
from tasks.parts import Split
from tasks.task import Text
from tasks.uses import kinds, one_of
from tasks.uses_calc import CALC
from tasks.uses_frame import Framed, frame
from tasks.uses_git import GIT
from tasks.uses_machine import MACHINE
from tasks.uses_shell import SHELLS
from tasks.uses_team import TEAM


CODE = frame(SHELLS + MACHINE + GIT + CALC + TEAM)


# ---------------------------------------------------------------- database


class Table:
    """A table with rows, in a database in memory that accepts only
    SELECT."""

    STEPS = 100000          # of SQLite's machine, for a query
    ROWS = 50
    LONGEST = 10000         # bytes of a value or a statement

    def __init__(self, name, columns, rows):
        self.name, self.columns, self.rows = name, columns, rows

    def query(self, sql):
        db = sqlite3.connect(':memory:')

        try:
            db.execute(f'create table {self.name} ('
                       + ', '.join(self.columns) + ')')
            db.executemany(f'insert into {self.name} values ('
                           + ', '.join('?' * len(self.columns)) + ')',
                           self.rows)
            db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, self.LONGEST)
            db.set_authorizer(read_only)
            db.set_progress_handler(lambda: 1, self.STEPS)
            cursor = db.execute(sql)
            found = cursor.fetchmany(self.ROWS)

            return [d[0] for d in cursor.description or ()], found

        except (sqlite3.Error, sqlite3.Warning) as e:
            raise ValueError(f'SQL error: {e}') from None
        finally:
            db.close()


def read_only(action, *names):
    return sqlite3.SQLITE_OK if action in (
        sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ,
        sqlite3.SQLITE_FUNCTION) else sqlite3.SQLITE_DENY


# table name; column of names; column of numbers; column of groups

TABLES = ('orders customer total city', 'sales product units region',
          'employees name salary city', 'students name points school',
          'books author pages language', 'rooms name seats building',
          'flights pilot passengers destination', 'members name age town',
          'products name price warehouse', 'runners name minutes country',
          'invoices client amount city', 'trips driver km city',
          'films director minutes language', 'plants name height room',
          'guests guest nights room', 'donations donor euros town',
          'parcels receiver grams city', 'tickets owner hours office',
          'courses teacher places language', 'cars owner mileage garage',
          'stock item pieces shelf', 'players player goals club',
          'patients patient visits ward', 'shops manager turnover city',
          'meters household kwh district', 'loans reader days branch',
          'payments payer cents bank', 'songs singer seconds language',
          'hotels host beds city', 'suppliers supplier deliveries country',
          'votes candidate ballots district', 'shifts worker hours room')


def table_case(rng):
    table, who, number, group = rng.choice(TABLES).split()
    pool = names.PRODUCTS if table in ('products', 'sales', 'stock') \
        else names.GOODS if table == 'plants' else names.FIRST
    groups = names.LANGUAGES if group == 'language' \
        else names.ROOMS if group in ('room', 'shelf', 'ward') \
        else names.PLACES
    groups = rng.sample(groups, rng.randint(2, 3))
    people = rng.sample(pool, rng.randint(4, 7))
    values = rng.sample(range(2, 900), len(people))
    rows = [(p, v, rng.choice(groups)) for p, v in zip(people, values)]
    name, n, place = rng.choice(rows)
    top = max(rows, key=lambda r: r[1])
    low = min(rows, key=lambda r: r[1])
    there = [r for r in rows if r[2] == place]
    limit = sorted(values)[rng.randrange(len(values) - 1)] + 1

    return dict(table=table, who=who, number=number, group=group, name=name,
                n=n, place=place, top=top[0], least=low[0], rows=rows,
                count=len(there), all=len(rows), big=top[1], small=low[1],
                sum=sum(values), part=sum(r[1] for r in there), limit=limit,
                above=sum(v >= limit for v in values), at=top[2],
                kinds=len({r[2] for r in rows}),
                best=max(there, key=lambda r: r[1])[0],
                people=' and '.join(r[0] for r in there) if len(there) < 3
                else ', '.join(r[0] for r in there),
                first=there[0][0], last=there[-1][0])


DATABASE = '''
= find the {number} of {name} in {table}
$ SELECT {number} FROM {table} WHERE {who} = '{name}'
- What is the {number} of {name} in [the table |]{table}?
- Look up the {number} of {name} [in|from] {table}.
- Which {number} does {name} have in {table}?
- In {table}, find the {number} for {name}.
- {name}'s {number} in {table}?
- whats the {number} for {name} ({table})
- {table}: {number} of {name}, please.
- I need the {number} that {table} has for {name}.
- Query the database: the {number} where {who} is {name} in {table}.
- The {who} {name} - which {number} is stored in {table}?
- Can you find {name} in {table} and tell me the {number}?
- {name} asks about the {number}. It should be in the table {table}.
- Please check the {number} of {who} "{name}" in {table}.
- We have a row for {name} in {table}. What does it say for {number}?
- Someone wrote that {name} has a wrong {number}. Which one is in {table}?
- get me {number} from {table} for {name} pls
- What does the database say about the {number} of {name}? The table is {table}.
- I am preparing a report about {name}: the {number}, please (table {table}).
- Read the {number} out of {table}, for {name} only.
- How about {name} in {table}? I am interested in the {number}.
- Table: {table}. {who}: {name}. Give me the {number}.
- Fetch one value from {table}, the {number} of {name}.
- In our {table} there is {name}. Which {number}?
- Does {table} know {name}? Tell me the {number}.
- Row {name}, column {number}, table {table}: what's in there?
- Could you see how high the {number} of {name} is, in {table}?
> [It is|The {number} of {name} is|{name} has] {n}.
> {n}[ is the {number}| for {name}|].
> {name}: {n}.
> The {number} is {n}.
> [According to|In] {table}, [it is|the {number} is] {n}.
> [The table|The database] says {n}.
> {name} has the {number} {n}.
> {n} is stored for {name}.
+ {n}

= count the rows of {table} with {place}
$ SELECT COUNT(*) FROM {table} WHERE {group} = '{place}'
- How many {table} have {place} as {group}?
- Count the {table} [with the|whose] {group} [is |]{place}.
- How many [rows|entries] of {table} have the {group} {place}?
- {table} with {group} {place}: how many?
- number of {table} where {group} = {place}
- How often is {place} the {group} in {table}?
- I'd like to know how many rows of {table} are for {place}.
- Count the rows in {table}, but only those with {place} as the {group}.
- {place} is a {group} in {table}. How many rows have it?
- Of all {table}, how many belong to the {group} {place}?
- Can you count for me? Table {table}, {group} {place}.
- We want to do something in {place}. How many {table} have that {group}?
- how many {table} for {place} pls
- Tell me the number of entries in {table} that have {place} in the column {group}.
- Run a count on {table} for {group} {place}.
- Does {table} have many rows with {place}? Count them.
- In the table {table}, {group} can be {place}. How many times is it?
- I need a number: {table} whose {group} is {place}.
- Filter {table} by the {group} {place} and count what remains.
- Is {place} frequent as {group} in {table}? Give me the count.
- For {place}, how many rows has {table}? It is in the column {group}.
- My boss asks how many of the {table} have the {group} {place}.
> [There are|It is|I count] {count}.
> {count}[ with {place}| in all|].
> {count} {table}[ have {place}|].
> {table} has {count} [rows with|for] {place}.
> [The count is|The number is] {count}.
> {place}: {count}
> [I found|The database has] {count}.
> {count} rows have {place} as {group}.
+ {count}

= find the row of {table} with the highest {number}
$ SELECT {who} FROM {table} ORDER BY {number} DESC LIMIT 1
- Who or what has the highest {number} in {table}?
- Which {who} of {table} has the [most|highest|largest] {number}?
- Find the {who} with the [highest|largest] {number} in {table}.
- Top {who} by {number} in {table}?
- {table}: which {who} is first by {number}?
- Sort {table} by {number} and name the {who} on top.
- whos got the highest {number} in {table}
- In {table}, the {number} is highest for which {who}?
- I want to know which {who} leads in {number}. The table is {table}.
- Look at {table}. Which {who} has the maximum of {number}?
- We give a prize for the highest {number}. Which {who} in {table} gets it?
- Nobody in {table} has a higher {number} than one {who}. Which?
- Rank the {table} by {number}; I only need the first {who}.
- The {who} with the largest {number} in {table}, please.
- Please find out where {number} is at its maximum in {table}. I need the {who}.
- Which {who} comes out on top in {table}, going by {number}?
- max {number} in {table} - which {who}?
- Can you tell which {who} of {table} beats all others in {number}?
- Name the {who} of the row in {table} whose {number} is largest.
- Whose {number} is the highest in {table}?
> [It is|That is] {top}.
> {top}[ has the highest {number}|].
> The highest {number} [has|belongs to] {top}.
> [On top|First] is {top}.
> {top} leads in {table}.
> {top} comes first by {number}.
> The {who} is {top}.
> [The answer is|The database says] {top}.
+ {top}

= find the row of {table} with the lowest {number}
$ SELECT {who} FROM {table} ORDER BY {number} ASC LIMIT 1
- Which {who} of {table} has the [lowest|smallest|least] {number}?
- Find the {who} with the [lowest|smallest] {number} in {table}.
- Who or what has the lowest {number} in {table}?
- {table}: which {who} is last by {number}?
- Sort {table} by {number}, smallest first. Which {who} is first?
- whos got the lowest {number} in {table}
- Whose {number} is the lowest in {table}?
- In {table}, the {number} is smallest for which {who}?
- I want to know which {who} has the minimum of {number} in {table}.
- Look at {table} and name the {who} with the smallest {number}.
- Someone in {table} must have the lowest {number}. Which {who}?
- Which {who} is at the bottom of {table}, going by {number}?
- min {number} in {table} - which {who}?
- The {who} with the least {number} in {table}, please.
- Every {who} in {table} but one has a higher {number}. Which one is it?
- Can you tell me the {who} whose {number} in {table} is smallest?
- Rank the {table} by {number}; I need the {who} that comes last.
- Please find out where {number} is at its minimum in {table}. I need the {who}.
- Whom or what do I find at the low end of {number} in {table}?
- {number} is smallest for which {who}? Use {table}.
- I'm looking for the {who} in {table} with the least {number}.
- The last place by {number} in {table} goes to which {who}?
> [It is|That is] {least}.
> {least}[ has the lowest {number}|].
> The lowest {number} [has|belongs to] {least}.
> [At the bottom|Last] is {least}.
> {least} comes last by {number}.
> The {who} is {least}.
> [The answer is|The database says] {least}.
> The smallest {number} is that of {least}.
+ {least}

= count the rows of {table}
$ SELECT COUNT(*) FROM {table}
- How many {table} are [there|in the database]?
- Count [all |]the [rows|entries] of [the table |]{table}.
- How [large|long] is the table {table}? [Count its rows.|]
- {table}: row count?
- number of {table} in the db
- how many {table} do we have
- Tell me how many rows {table} has.
- I need the total number of {table} that are stored.
- What is the size of {table}, in rows?
- Is {table} empty? How many rows does it have?
- Run a count over the whole table {table}.
- Have we many {table}? Give me the number.
- For the summary I need to know how many {table} the database has.
- Please count every row in {table}.
- SELECT COUNT on {table}: what's the result?
- The import into {table} is through. How many rows are in it now?
- How many records are stored in {table}?
- count {table} pls
- All {table} together, how many are they?
- What number of entries does the table {table} hold?
> [There are|It has|I count] {all}[ rows|].
> {all}[ in all|].
> {table} has {all} rows.
> [It is|That makes] {all}.
> [The count is|The number is] {all}.
> {table}: {all} rows
> [The database has|You have] {all} {table}.
> [In all|Altogether], {all}.
+ {all}

= find the largest {number} in {table}
$ SELECT MAX({number}) FROM {table}
- What is the [largest|highest] {number} in {table}?
- Give me the maximum of {number} in {table}.
- How high is the {number} at most, in {table}?
- max {number} in {table}?
- {table}, column {number}: the maximum please
- Up to what value does {number} go in {table}?
- I need the highest value of the column {number} in {table}.
- Which value is the largest for {number} in the table {table}?
- No name, just the value: what's the top {number} in {table}?
- Look through {table} for the largest {number}.
- For the scale of my chart I need the largest {number} in {table}.
- What's the record for {number} in {table}?
- Tell me the biggest {number} that is stored in {table}.
- The highest {number} of all {table}, please.
- Calculate MAX({number}) over {table}.
- whats the biggest {number} in {table}
- What's the upper end of {number} in {table}?
- Please find the maximal {number} (table {table}).
- SELECT MAX of {number}, {table} - result?
- Largest value, column {number}, table {table}?
- I'd like the top value of {number} from {table}.
- What is the peak of {number} in {table}?
> [It is|The highest is|At most] {big}.
> {big}[ at most|].
> The [largest|highest] {number} is {big}.
> The maximum is {big}.
> The {number} goes up to {big}.
> Maximum of {number}: {big}
> [The database says|I get] {big}.
> No {number} is above {big}.
+ {big}

= find the smallest {number} in {table}
$ SELECT MIN({number}) FROM {table}
- What is the [smallest|lowest] {number} in {table}?
- Give me the minimum of {number} in {table}.
- How low is the {number} at least, in {table}?
- min {number} in {table}?
- {table}, column {number}: the minimum please
- From what value on does {number} go in {table}?
- I need the lowest value of the column {number} in {table}.
- Which value is the smallest for {number} in the table {table}?
- No name, just the value: what's the lowest {number} in {table}?
- Look through {table} for the smallest {number}.
- My chart begins at the smallest {number} in {table}. Which is that?
- Tell me the least {number} that is stored in {table}.
- The lowest {number} of all {table}, please.
- Calculate MIN({number}) over {table}.
- whats the smallest {number} in {table}
- Please find the minimal {number} (table {table}).
- Does {number} in {table} go down to zero? What is the smallest?
- Smallest value, column {number}, table {table}?
- What's the lower end of {number} in {table}?
- SELECT MIN of {number}, {table} - result?
- I'd like the bottom value of {number} from {table}.
- Where does {number} start in {table}, at which value?
> [It is|The lowest is|At least] {small}.
> {small}[ at least|].
> The [smallest|lowest] {number} is {small}.
> The minimum is {small}.
> The {number} begins at {small}.
> Minimum of {number}: {small}
> [The database says|I get] {small}.
> No {number} is below {small}.
+ {small}

= find the {group} of {name} in {table}
$ SELECT {group} FROM {table} WHERE {who} = '{name}'
- What is the {group} of {name} in {table}?
- Which {group} does {name} have in {table}?
- Look up the {group} of {name} in {table}.
- {name}'s {group} in {table}?
- whats the {group} for {name} ({table})
- {table}: {group} of {name}, please.
- I need the {group} that {table} has for {name}.
- Query the database: the {group} where {who} is {name} in {table}.
- The {who} {name} - which {group} is stored in {table}?
- Can you find {name} in {table} and tell me the {group}?
- {name} has a new {group}, I think. What does {table} say?
- Please check the {group} of {who} "{name}" in {table}.
- We have a row for {name} in {table}. Which {group} is in it?
- get me {group} from {table} for {name} pls
- I forgot the {group} of {name}. It is in the table {table}.
- Read the {group} out of {table}, for {name} only.
- Table: {table}. {who}: {name}. Give me the {group}.
- In our {table} there is {name}. Which {group}?
- With which {group} is {name} listed in {table}?
- To which {group} does {name} belong according to {table}?
- {name}, {table}: {group}?
- Where do I find {name}, I mean the {group}? See {table}.
- For {name} there should be a {group} in {table}. Tell me which.
- Is there a {group} stored for {name} in {table}? Which one?
- Row {name}, column {group}, table {table}: what's in there?
- Could the database tell me the {group} of {name}? It's the table {table}.
- I am looking for {name} in {table}, in order to learn the {group}.
> [It is|The {group} of {name} is|{name} has] {place}.
> {place}[ is the {group}| for {name}|].
> {name}: {place}.
> The {group} is {place}.
> [According to|In] {table}, [it is|the {group} is] {place}.
> [The table|The database] says {place}.
> {name} has the {group} {place}.
> {place} is stored for {name}.
+ {place}

= add up the {number} in {table}
$ SELECT SUM({number}) FROM {table}
- What is the [total|sum] of {number} in {table}?
- Add up [the|all] {number} in {table}.
- [Sum|Total] the column {number} of {table}.
- {table}: {number} in total?
- sum of {number} over all {table} pls
- How much {number} do all {table} have together?
- I need SUM({number}) from {table}.
- Please add the {number} of all rows in {table}.
- If you add everything in the column {number}, what do you get? Table {table}.
- Give me the grand total of {number} for {table}.
- Over all {table}, what does {number} add up to?
- For the annual report: total {number}, table {table}.
- Taken together, the {number} of {table} is how much?
- Let the database sum {number} in {table}.
- whats {number} in {table} all together
- Don't list the rows of {table}, just tell me the sum of {number}.
- Everything in {number} of {table}, summed up, is how much?
- One figure for {table}: the total of {number}.
- I need to know how large {number} is for {table} as a whole.
- What do you get if you total {number} in {table}?
- Could the database tell me the sum over {number}? The table is {table}.
> [It is|The total is|The sum is] {sum}.
> {sum}[ in all| in total|].
> The {number} [adds|add] up to {sum}.
> [Together|In all], {sum}.
> Total {number}: {sum}
> The sum of {number} is {sum}.
> [I get|The database says] {sum}.
> All {table} together have {sum}.
+ {sum}

= add up the {number} in {table} for {place}
$ SELECT SUM({number}) FROM {table} WHERE {group} = '{place}'
- What is the [total|sum] of {number} in {table} [for|with] the {group} {place}?
- Add up the {number} of all {table} with {place} as {group}.
- {table}: total {number} for {place}?
- sum {number} where {group} is {place}, table {table}
- For {place}, what does {number} add up to in {table}? It is in the column {group}.
- Only the rows of {table} with {group} {place}: what is the sum of {number}?
- Please total the {number} in {table}, but just for the {group} {place}.
- How much {number} comes from {place}? Use the {group} in {table}.
- I am interested in {place} only. Sum up {number} in {table} for that {group}.
- Total of {number} pls, {table}, {group} {place}
- Let the database add the {number} of the {table} whose {group} is {place}.
- My report about {place} needs the sum of {number} from {table} ({group} = {place}).
- In {table} several rows may have the {group} {place}. Add their {number}.
- Give me SUM({number}) of {table} for {group} '{place}'.
- {place} only: the sum of {number} in {table}. ({place} is a {group}.)
- How large is {number} in {table} for {place} as a whole? Filter by {group}.
- Select the {table} with {group} {place} and sum their {number}.
- One figure, please: {number} in {table}, for the {group} {place}.
- My boss is in {place} and wants its total {number} from {table}, where it is a {group}.
- I need a sum: {number}, table {table}, {group} {place}.
- What do all {table} of the {group} {place} have in {number}, added up?
> [It is|The total is|The sum is] {part}.
> {part}[ for {place}| in all|].
> [For {place}|With {place}] it is {part}.
> The {number} for {place} [adds|add] up to {part}.
> {place}: {part}
> The sum of {number} is {part}.
> [I get|The database says] {part}.
> {place} has {part} in all.
+ {part}

= count the rows of {table} with {limit} or more in {number}
$ SELECT COUNT(*) FROM {table} WHERE {number} >= {limit}
- How many {table} have at least {limit} in {number}?
- Count the {table} with {number} [of |]{limit} or more.
- {table} with {number} >= {limit}: how many?
- In how many rows of {table} is {number} at least {limit}?
- number of {table} where {number} is {limit} or higher
- How many rows in {table} reach {limit} in {number}?
- I want to know how many {table} have {limit} or more as {number}.
- The limit is {limit}. How many rows of {table} have that {number} or more?
- Please count the entries of {table} whose {number} is not below {limit}.
- Leave out everything below {limit} in {number}. How many {table} remain?
- Not the share of {table}, just the count: how many have {limit} or more in {number}?
- From {limit} on, we say that the {number} is high. How many such {table} are there?
- count rows, {table}, {number} {limit}+
- Of the {table}, how many have {limit} or a greater value in {number}?
- Is {limit} often reached in {number} of {table}? Count the rows that have it or more.
- {table}: count where {number} is not less than {limit}
- A {table} row counts if {number} is {limit} or above. How many count?
- Let the database count the {table} with {number} from {limit} up.
- How frequent is a {number} of {limit} and more in {table}?
- I need a count: {table}, {number} of {limit} and up.
- {number} at {limit} or over: how many rows does {table} have?
> [There are|It is|I count] {above}.
> {above}[ in all| of them|].
> {above} {table}[ reach {limit}|].
> [The count is|The number is] {above}.
> {table} has {above}[ such rows| of them|].
> {above} rows have {limit} or more.
> [I found|The database has] {above}.
> At least {limit}: {above} rows
+ {above}

= list the {who} of {table} with {place}
$ SELECT {who} FROM {table} WHERE {group} = '{place}'
- Which {who} [has|have] the {group} {place} in {table}?
- List every {who} in {table} with {place} as {group}.
- {table} with {group} {place}: which {who}?
- Who or what in {table} has {place} as the {group}?
- Show me the {who} of all rows in {table} for {place}.
- names please: {table} where {group} = {place}
- For the {group} {place}, give me the {who} of each row in {table}.
- I want to see which {who} belongs to {place}. It is the {group} in {table}.
- Filter {table} by {group} {place} and list the {who}.
- Everything in {table} for the {group} {place}; the {who} is enough.
- Can you tell me which {who} in {table} is listed under {place}, the {group}?
- {place} is the {group} that I care about. Which {who} has it in {table}?
- We travel to {place}. Which {who} in {table} has that {group}?
- I need a list from {table}: {who}, if the {group} is {place}.
- {place}: which {who} do we have in {table}? It's stored as {group}.
- I need names. Table {table}, where the {group} equals {place}, column {who}.
- Select {who} from {table} for the {group} {place} and tell me all.
- Everybody or everything with the {group} {place} in {table}, please ({who}).
- Read out the column {who} of {table}, but only for {group} {place}.
- Whose {group} is {place} in {table}? Give me each {who}.
- {table}, {place} (that is the {group}): names from the column {who}, please.
> {people}.
> [It is|That is|There is] {people}.
> [I found|The table has|The rows are]: {people}.
> For {place}: {people}.
> {place} has {people}.
> [In {table}|With {place}]: {people}
> The database [returns|lists] {people}.
> [Here you go|Here]: {people}.
+ {first}
+ {last}

= count the different values of {group} in {table}
$ SELECT COUNT(DISTINCT {group}) FROM {table}
- How many different values does {group} have in {table}?
- Count the distinct {group} values of {table}.
- {table}: number of different values in {group}?
- COUNT DISTINCT of {group} in {table} please
- In {table}, the same {group} occurs more than once. How many different ones are there?
- If every {group} is counted only once, how many are in {table}?
- I want to know how many different entries the column {group} of {table} has.
- how many unique {group} values in {table}
- Please count each {group} in {table} once.
- Without duplicates, how many values has {group} in {table}?
- Does {table} have many different values of {group}? How many?
- Number of unique values in column {group}, table {table}.
- Distinct {group} in {table}: how many?
- How varied is {group} in {table}? Count its different values.
- Over how many different {group} values is {table} spread?
- Several rows of {table} share a {group}. How many different ones exist?
- Let the database count the distinct values of {group} ({table}).
- How many kinds of {group} does {table} know?
- I need the number of different entries under {group} in {table}.
- Each {group} once, please: how many are there in {table}?
> [There are|It is|I count] {kinds}.
> {kinds}[ different ones| in all|].
> {table} has {kinds} different values.
> [The count is|The number is] {kinds}.
> {kinds} distinct values[ of {group}|].
> {group}: {kinds} different values
> [I found|The database has] {kinds}.
> {group} has {kinds} values.
+ {kinds}

= find the row of {table} with the highest {number} for {place}
$ SELECT {who} FROM {table} WHERE {group} = '{place}' ORDER BY {number} DESC LIMIT 1
- Which {who} has the highest {number} in {table} among those with {group} {place}?
- For the {group} {place}, which {who} in {table} has the largest {number}?
- {table}, only {group} {place}: top {who} by {number}?
- Among the rows of {table} with {place} as {group}, find the {who} with the highest {number}.
- I only look at {place} ({group}). Which {who} in {table} leads in {number}?
- best {who} by {number} for {group} {place} in {table} pls
- Take the {table} whose {group} is {place}. Which {who} has the most {number}?
- Who or what is first in {number} if {table} is limited to the {group} {place}?
- Filter {table} by {group} {place}, sort by {number}, and name the {who} on top.
- Not in all of {table}, just for {group} {place}: which {who} has the maximum {number}?
- Of those with {place} as {group} in {table}, whose {number} is largest?
- Name the {who} with the largest {number} for {place}, which is a {group} in {table}.
- {place} has several rows in {table} as {group}; which {who} is best by {number}?
- With the {group} {place}, who or what tops {table} by {number}?
- I need the leading {who} for {group} {place}: table {table}, measured by {number}.
- Within {place} (that's a {group} of {table}), which {who} has the maximum of {number}?
- {place} is the {group} I want. Who or what has the largest {number} there, in {table}?
- Restrict {table} to {group} {place} and give me the {who} with the top {number}.
- The best {who} of {place} in {table}? Go by {number}; {place} is a {group}.
- Look only at rows of {table} with {group} {place}. Where is {number} highest? I need the {who}.
> [It is|That is] {best}.
> {best}[ has the highest {number}| for {place}|].
> [For {place}|With {place}] it is {best}.
> [On top|First] is {best}.
> {best} leads[ for {place}|].
> {place}: {best}
> The {who} is {best}.
> [The answer is|The database says] {best}.
+ {best}
'''


def sql_service(case):
    table = case['table']
    columns = f'{case["who"]}, {case["number"]}, {case["group"]}'
    typed = (f'{case["who"]} text, {case["number"]} integer, '
             f'{case["group"]} text')

    return service('the database', '''[run|execute|] [sql|query|sql query|database query]
[database|db|sql] [query|run|execute|select]
query [database|db|sql|sqlite|postgres|warehouse]
[sqlite|postgres|mysql|warehouse|bi|analytics] [query|select|sql|run query]
[acme|shop|company|app] [db|database] [query|sql|select]
[select|ask|read] [database|db|rows]
[run|exec] [select|sql statement|statement]''',
f'''[Runs|Executes] an SQL query[ on the database|]. [Tables|Schema]: {table}({columns})
[SQL|Database] access. [There is the|The only] table {table}({columns})
Query the database with SELECT. {table} has the columns {columns}
[Read-only|Safe] SQL. create table {table} ({typed})
Takes [one statement|a SELECT] and returns the rows[ that it finds|]. [Table|Known table]: {table}, columns: {columns}
[Ask|Query] the [company's|shop's|team's] [SQLite|Postgres|MySQL] database, which has {table} ({typed})
{table}: {columns}. [Runs SQL on it|Send SQL|SELECT only].
Use this for [numbers from our data|questions about {table}]; [it takes SQL|the language is SQL]. Columns of {table}: {columns}''', [
        parameter('sql', 'sql query statement q command sql_query select '
                  'query_string sqlText',
                  '[The|] [SQL|query|SELECT statement]')], 'text', plain=True,
        schema=True)


class Query:
    """A kind of use with a service and a table of its own in each task.  Any
    query is right whose result has the wanted values."""

    def __init__(self, want, sql, asks, answers, keys):
        self.want, self.sql, self.keys = want, sql, keys
        self.asks, self.answers = asks, answers

    def draw(self, rng):
        case = table_case(rng)
        case['sql'] = self.sql.format(**case)
        table = Table(case['table'], (case['who'], case['number'],
                                      case['group']), case['rows'])
        keys = [k.format(**case) for k in self.keys]

        def has_all(role, wanted, value):
            found = json.dumps(table.query(str(value))[1], ensure_ascii=False)

            return all(k in found for k in keys)

        kind = Framed(sql_service(case), None, self.want, ('sql',),
                      self.asks, self.answers, self.keys, '', has_all)
        names_of, rows = table.query(case['sql'])
        layout = one_of(rng, 'table|table|json|list|csv')
        text = ' | '.join(names_of) + '\n' + '\n'.join(
            ' | '.join(map(str, r)) for r in rows)

        if layout == 'json':
            text = json.dumps([dict(zip(names_of, r)) for r in rows],
                              ensure_ascii=False)
        elif layout == 'list':
            text = json.dumps({'rows': rows, 'count': len(rows)},
                              ensure_ascii=False)
        elif layout == 'csv':
            text = '\n'.join(','.join(map(str, r)) for r in [names_of, *rows])

        case['records'] = Text(text)

        return kind.use(rng, case)


def database_kinds():
    found = []

    for block in DATABASE.strip().split('\n\n'):
        part = {mark: [] for mark in '=$->+'}

        for line in block.splitlines():
            part[line[0]].append(line[2:])

        found.append(Query(part['='][0], part['$'][0], Split(part['-']),
                           tuple(part['>']), tuple(part['+'])))

    return found


CODE += database_kinds()

FILTER = service('records', '''[find|query|search|filter|get] [records|rows|entries|table|documents]
[records|table|crm|documents] [find|query|search|filter]
[airtable|sheet|spreadsheet|collection|base|mongo] [find|lookup|get rows|query|filter]
[lookup|fetch|read] [record|row|entry|in table|in sheet]
[acme|erp|backoffice|hub] [records|table|rows] [find|search|lookup]
[table|row|record] [lookup|get|by value]''',
'''[Finds|Returns] the [rows|records] of a table [that match a filter|with a value]
[Records|Table] [search|lookup] by [field and value|a filter]
[Looks up|Fetches] [rows|records|entries] [where a column has a value|by one column]
[Give|Takes] a table, a column and a value; [returns|it returns] the [whole rows|matching rows]
Exact match on one [field|column] of [a table|a sheet|a collection]
Access to the [company's|team's|shop's] tables[, one filter at a time|]''', [
    parameter('table', 'table collection source dataset from sheet '
              'table_name base tableName',
              '[Name of the|The] [table|collection]'),
    parameter('field', 'field column key attribute column_name field_name '
              'where filter_field', '[The|] [field|column] to compare'),
    parameter('value', 'value equals is match filter_value search_value eq',
              '[The|] value that it must have')], 'text', plain=True)


def filter_case(rng):
    case = table_case(rng)
    row = next(r for r in case['rows'] if r[0] == case['name'])
    record = dict(zip((case['who'], case['number'], case['group']), row))
    record = {'id': rng.randrange(1, 900), **record} \
        if rng.random() < 0.3 else record
    layout = one_of(rng, 'a|b|c|d|e')
    text = json.dumps(
        {'a': [record], 'b': {'matches': [record]}, 'c': record,
         'd': {'rows': [record], 'total': 1}, 'e': {'data': record}}[layout],
        ensure_ascii=False)
    case.update(field=case['who'], value=case['name'], records=Text(text))

    return case


CODE += frame(kinds(FILTER, filter_case, '''
= find the {number} of {name} in {table}
@ table field value
- In {table}, what is the {number} where {who} is {name}?
- Find the {number} in the table {table} [for|of] the {who} {name}.
- [Search|Filter] {table} for {who} = {name} and [tell|give] me the {number}.
- What {number} has the {who} {name} in {table}?
- {table}: {who} {name}. {number}?
- Look into {table} for the {who} {name}. I need the {number}.
- the {number} of {who} {name} ({table}) pls
- Which {number} stands in {table} next to the {who} {name}?
- The {who} is {name}, the table is {table}. Which {number}?
- Please look up the {who} "{name}" in {table} and read me the {number}.
- I'd like to know the {number} of one {who} in {table}, namely {name}.
- One row in {table} has {name} as {who}. What is its {number}?
- Get the row of {table} whose {who} is {name} and tell me the {number}.
- whats the {number} in {table} where the {who} is {name}
- Can you check {table}? The {who} is {name} and I want the {number}.
- {name} is a {who} in {table}. How much is the {number}?
- In the column {who} of {table} find {name}; then tell me the {number}.
- I am on the phone with somebody about {name}. Which {number} does {table} have for this {who}?
> [It is|The {number} is|{name} has] {n}.
> {n}[ is the {number}|].
> The {number} of {name} is {n}.
> {name}: {n}.
> {table} says {n}.
> [The row|The table] has {n}.
> [For {name}|There] the {number} is {n}.
> [I found|Found]: {n}.
+ {n}

= find the {group} of {name} in {table}
@ table field value
- In {table}, what is the {group} where {who} is {name}?
- Find the {group} in the table {table} [for|of] the {who} {name}.
- [Search|Filter] {table} for {who} = {name} and [tell|give] me the {group}.
- {table}: {who} {name}. {group}?
- Look into {table} for the {who} {name}. I need the {group}.
- the {group} of {who} {name} ({table}) pls
- Which {group} stands in {table} next to the {who} {name}?
- The {who} is {name}, the table is {table}. Which {group}?
- Please look up the {who} "{name}" in {table} and read me the {group}.
- I'd like to know the {group} of one {who} in {table}, namely {name}.
- One row in {table} has {name} as {who}. What is its {group}?
- Get the row of {table} whose {who} is {name} and tell me the {group}.
- whats the {group} in {table} where the {who} is {name}
- Can you check {table}? The {who} is {name} and I want the {group}.
- {name} is a {who} in {table}. Which {group} is that?
- In the column {who} of {table} find {name}; then tell me the {group}.
> [It is|The {group} is|{name} has] {place}.
> {place}[ is the {group}|].
> The {group} of {name} is {place}.
> {name}: {place}.
> {table} says {place}.
> [The row|The table] has {place}.
> [For {name}|There] the {group} is {place}.
> [I found|Found]: {place}.
+ {place}
'''))
