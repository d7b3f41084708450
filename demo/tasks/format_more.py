# Copyright (C) The nginx-dsa authors

"""More forms of an answer that a user may ask for: facts of a sentence as JSON
or lines, rows as objects, table or CSV, lists with a given mark or number, a
list sorted, reversed, without repetitions, filtered or counted, a word
replaced, a letter filled in, a date in another notation.

In a template, "<" and ">" enclose the words that decide the form.  The
reasoning quotes them.  A line has several templates, divided by " ~ "."""

import datetime
import json
import re

from tasks import happen, names, strings
from tasks.daily import task
from tasks.daily_rough import rough
from tasks.parts import Split
from tasks.phrase import capital, expand, manner
from tasks.task import CHAT, RETAIN, Step, Turn
from tasks.times import clock


def asks(text):
    return Split(s.strip().replace('\\n', '\n')
                 for s in re.split(r'\n| ~ ', text.strip()))


# requests

AS_JSON = asks(r'''<Extract {keys} as JSON>: {text} ~ {text}\n\n<JSON with the keys {keys}>, please. ~ {text} Give me that as <a JSON object with {keys}>. ~ Read the sentence and answer <in JSON, keys {keys}>.\n{text} ~ <Fill in this JSON>: {shape}\n{text} ~ {text} -> <json ({keys})> ~ What are {keys} here? <Answer with a JSON object.> {text} ~ From "{text}" I need <{keys} in JSON>. ~ json pls, <keys {keys}>: {text} ~ Our script wants <{{"key": "value"}} with {keys}>. The text: {text} ~ <Only JSON.> Keys: {keys}. Text: {text} ~ Somebody wrote: "{text}" Turn it into <JSON that has {keys}>. ~ Pull <{keys}> out of this and write a JSON object. {text} ~ {text}\nReturn <a JSON object, its keys being {keys}>, and no explanation. ~ I'm building a database. <Store {keys} as JSON>: {text}
Could you <make a JSON object> of this sentence? It should have {keys}. {text} ~ Parse: {text}\n<Output: {shape}> ~ {text} How does that look as <JSON with {keys}>? ~ The fields are {keys}. <Write one JSON object> for this: {text} ~ I want <exactly these keys: {keys}>. JSON please. {text} ~ No words around it, <just the JSON with {keys}>. {text} ~ Here's a note: {text} <As JSON ({keys}), thanks.> ~ <Convert to JSON using {keys} as keys.> Input: {text} ~ Please read "{text}" and give back <{shape}>, filled in as JSON. ~ My app can't read sentences, only <JSON with {keys}>. {text} ~ Information extraction. Sentence: {text} <Fields: {keys}.> Format: JSON. ~ {text}\n\nI only need <{keys}>, in JSON. ~ Take this sentence apart. <JSON, please: {keys}.> {text} ~ Fill the form <{shape}> (JSON) from this text: {text}
Which {keys} does this give? <Reply in JSON only.>\n\n{text} ~ <{keys} as JSON>, from the following.\n\n{text} ~ API request body needed. It is <JSON with {keys}>. Take the values from: {text} ~ can u put this in <json with {keys}>? {text} ~ Summarize "{text}" as <a JSON object with the keys {keys}>. ~ Make <one object, {keys}>, in JSON. The source is this: {text} ~ In JSON, what would <{keys}> be? {text} ~ Hello, I have this text: {text} Please give me <{keys} as a JSON object>. ~ <JSON, these keys and no others: {keys}.> {text} ~ {text} Write <{keys}> as JSON, one object, nothing more. ~ I've got one sentence and need <its {keys} in a JSON object>. {text} ~ Sentence in, <JSON with {keys}> out: {text}''')
KEY_LINES = asks(r'''{text}\n\n<Write {keys}, each as "key: value" on its own line.> ~ <One line per fact, key: value>, for {keys}. {text} ~ List {keys} <as lines of the form "key: value">: {text} ~ {text} Give me {keys} <line by line, name and colon first>. ~ From this text, note {keys} <like this:\n{shape}>\n\n{text} ~ <Fill in:\n{shape}>\n\n{text} ~ {text}\n<Use this layout:\n{shape}> ~ Please answer <in this form:\n{shape}>\nThe text is: {text} ~ I need a short record with {keys}, <"key: value" per line>. {text} ~ {text} Break this down into {keys}. <Key, colon, value, new line.> ~ key: value pls, <one per line>, {keys}. {text} ~ Could you pull out {keys}? <Each on a separate line after its name and a colon.> {text} ~ <Lines with "key: value">, keys {keys}. Input: {text} ~ Take "{text}" and write <"key: value" lines> for {keys}. ~ Make a small card of this with {keys}, <a line each, with a colon>. {text}
My form has these fields: {keys}. <Write field: value>, every field on a new line. {text} ~ Turn this into <key: value lines> ({keys}).\n{text} ~ {text}\n\nWhat are {keys}? <No sentences, just key: value lines.> ~ Sum up {keys} <under each other, as key: value>. {text} ~ Here is a message: {text} Show me {keys}, <each with its label and a colon on a line>. ~ <{shape}>\n\nComplete this with the text: {text} ~ For the label I need {keys} <as key: value, one per line>. {text} ~ Read this and complete the <template below>. {text}\n\n{shape} ~ {text} Just {keys}, please, <label: value, on separate lines>. ~ Structured, but not JSON: <key: value on lines>, {keys}. {text} ~ Extract {keys}. <Format: key: value, a new line for each.>\n{text} ~ Note down {keys} <in the style "key: value", line after line>. {text} ~ The following has {keys} in it. <Give each a line like "key: value".> {text}
{text}\nReply with <a "key: value" line> for each of {keys}. ~ I'd like {keys} from this text <as a list of "key: value" lines>. {text} ~ Put {keys} on lines of their own, <with "key:" before each value>. {text} ~ "{text}" Please <rewrite it as key: value lines>, with {keys}. ~ Only {keys} matter. <One "key: value" per line>: {text} ~ Hi, please read this: {text} And then write {keys} down, <one key: value per line>. ~ <key: value, no bullets, one a line>. Keys: {keys}. {text} ~ Data entry: {text} <Lines, "key: value">, for {keys}. ~ Which {keys}? <Answer in lines, key: value.> {text} ~ Each of {keys} gets <its own line: key, colon, value>. {text} ~ {text} I'd copy {keys} into a form, so <key: value on each line>. ~ <Line by line, key: value>, only {keys}: {text}''')
ONLY = asks(r'''{text} What is the {key}? <Only the {key}.> ~ {text}\n\nTell me the {key} and <nothing else>. ~ <Just the {key}>, please: {text} ~ Find the {key} in this sentence. <No explanation.> {text} ~ Answer <with the {key} alone>. {text} ~ {text} {key}? <only that, no sentence> ~ What's the {key} here, <without any other words>? {text} ~ Read this. {text} I want <only the {key}>. ~ <The {key} only.> {text} ~ I just need <the {key}, nothing around it>. {text} ~ Extract <the {key}> and write it alone.\n{text} ~ {text} Write down the {key}. <No full sentence.> ~ My program needs <the bare {key}>. {text} ~ From "{text}", give me <just the {key}>. ~ Please give me <the {key} and not a word more>. {text} ~ {text} Which {key} is mentioned? <Name it and stop.>
{text}\n<{key}:> ~ {text} Don't repeat the sentence, <say only the {key}>. ~ Can you tell me the {key}? <Short, only the {key} itself.> {text} ~ {text} So the {key} is? <Reply with it only.> ~ <nothing but the {key}> pls: {text} ~ The message is: {text} Which is the {key}? <I don't need a sentence.> ~ <No sentence, only the {key}.> Text: {text} ~ {text} <Copy the {key}>, leave out everything else. ~ Somebody wrote "{text}" Let me know <the {key}, and only that>. ~ {text} Could you say the {key}? <Just that.> ~ Fill in the {key}, <only the {key}>: {text} ~ I'll paste your answer into a cell, so <only the {key}>, please. {text} ~ {text} All I want to know is the {key}. <Leave the rest out.> ~ Look for the {key}: {text} <Don't add anything.>
{text} State the {key}, <bare, without a label>. ~ Short question, <short answer>: what is the {key}? {text} ~ Which {key} do you find in the text? <The {key} will do.> {text} ~ Text: {text}\nQuestion: what is the {key}?\n<Answer with the {key} only.> ~ {text} <Your whole answer should be the {key}.> ~ Give the {key}. <No extra words.> {text} ~ {text}\n\n<Only output the {key}> ~ For the label I need <just the {key}>, taken from this: {text} ~ {text} the {key}, <thats all i need> ~ {text} Nothing but <the {key}>, thank you. ~ In one expression, <only the {key}>: {text}''')
OBJECTS = asks(r'''<Make a JSON array of objects> with {keys}:\n{rows} ~ {rows}\n\n<An array of objects in JSON>, keys {keys}. ~ Each line is a record with {keys}. <JSON array, please>:\n{rows} ~ <Convert these lines to a list of JSON objects> ({keys}).\n\n{rows} ~ {rows}\nreturn <json, a list with one object per line>, keys: {keys} ~ <One JSON object per line, all in one array>. The keys are {keys}.\n{rows} ~ I have these lines:\n{rows}\nTurn them into <a JSON array>; each entry has {keys}. ~ My web page loads <a JSON list of objects> with {keys}. Make it from this:\n{rows} ~ <JSON, please: an array>, every object with {keys}.\n{rows} ~ Could you write this <as an array of JSON objects>? Keys: {keys}.\n{rows} ~ Here's what I've got:\n{rows}\n<JSON array of objects> with {keys}, no comments.
Read the lines and <output a JSON array>. Take {keys} from each line.\n{rows} ~ {rows}\n\nHow would that look <as JSON objects in an array>? Use {keys}. ~ Test data needed, <a JSON array of objects> with {keys}:\n{rows} ~ Fields: {keys}. <Format: JSON array.> Data:\n{rows} ~ <Objects in a JSON list>, please, with {keys} as keys.\n\n{rows} ~ json array pls, <objects with {keys}>\n{rows} ~ From every line take {keys} and <collect them as objects in a JSON array>.\n{rows} ~ The import wants <a JSON array>. Keys are {keys}.\n{rows} ~ {rows}\n<As JSON>: one array, one object for each line, keys {keys}. ~ Please <put these records into a JSON array>. Each one has {keys}:\n{rows} ~ <No text, only a JSON array of objects.> {keys}:\n{rows}
Structure this for me, <as a JSON list of objects>. I need {keys}.\n{rows} ~ <Write a JSON list>; its objects have {keys}.\n{rows} ~ I keep notes like these:\n{rows}\nNow I need them <as a JSON array of objects>, keys {keys}. ~ These are rows of {keys}. <Encode them as a JSON array of objects.>\n{rows} ~ {rows}\n\nParse every line into {keys} and <answer with a JSON array>. ~ Let's move this to JSON, <an array with one object per line>. Keys: {keys}\n{rows} ~ Help me with my fixture file. <JSON array>, objects with {keys}:\n{rows} ~ Lines:\n{rows}\nKeys: {keys}\n<Result: a JSON array> ~ <[{{...}}, {{...}}]> is the format, JSON, with {keys}.\n{rows} ~ What I need is <an array of objects, as JSON>. Every object: {keys}. The lines:\n{rows}
can you make <a json array with objects> out of this, keys {keys}?\n{rows} ~ Save these <as a JSON array>, with {keys} for each.\n{rows} ~ A list for my script, <in JSON, objects with {keys}>:\n{rows} ~ Every row becomes <an object in a JSON array>. Keys: {keys}.\n{rows} ~ I'd like <JSON, one array with all the records>, fields {keys}.\n{rows} ~ {rows}\n<JSON list of objects>? The keys should be {keys}. ~ Who can read this? Better <as JSON objects in a list>, with {keys}:\n{rows} ~ Rows to JSON: <an array>, in it objects with {keys}.\n{rows}''')
TABLE = asks(r'''<Make a Markdown table> with the columns {keys}:\n{rows} ~ {rows}\n\n<As a table>, please. Columns: {keys}. ~ Put this <into a table> with {keys} on top.\n{rows} ~ I need <a table with {n} columns>: {keys}.\n{rows} ~ <Table pls>, {keys}\n{rows} ~ Turn these lines into <a Markdown table> ({keys}):\n{rows} ~ Columns are {keys}. <Draw the table.>\n{rows} ~ Can you <arrange this in a table>? One column each for {keys}.\n\n{rows} ~ {rows}\n<Markdown table>, header {keys} ~ My README needs <a table> of {keys}. Here is the data:\n{rows} ~ Each line is a row. <Write a table> whose header is {keys}.\n{rows} ~ <{n} columns, as a Markdown table>: {keys}. The rows:\n{rows} ~ These lines are hard to read:\n{rows}\nA <table with {keys}> would be better. ~ Please <format as a Markdown table>.\nHeader: {keys}\n{rows}
{rows}\n\nCould I have that <in table form>, with {keys} as the header? ~ From every line, take {keys} and <build a table> in Markdown.\n{rows} ~ <Tabulate {keys}>:\n{rows} ~ For the wiki: <a Markdown table>, columns {keys}, with this content.\n{rows} ~ Show me {keys} <side by side in a table>.\n{rows} ~ What does this look like <as a Markdown table>? Columns {keys}.\n{rows} ~ <No text, only a Markdown table> with {keys}.\n{rows} ~ I have to present this:\n{rows}\n<Table, please>, with {keys}. ~ <A table.> Header row: {keys}. Data:\n{rows} ~ Using pipes, <make a table> with the headings {keys}.\n{rows} ~ Data below. <Write it as a table with pipes>; the columns are {keys}.\n{rows} ~ <Markdown, one table>, {keys} in this order:\n{rows} ~ I'd like to see {keys} <in a table>, row by row.\n{rows}
{rows}\nis what we have. <Convert it to a Markdown table> with {keys}. ~ Let's have <a table of {keys}>:\n{rows} ~ Rewrite the lines <as rows of a Markdown table>. The header is {keys}.\n{rows} ~ hey, <table out of this>? columns {keys}\n{rows} ~ Lay out {keys} <as a Markdown table>.\n\n{rows} ~ Copy this <into a Markdown table>, headings {keys}:\n{rows} ~ Give me <a {n}-column table> of {keys}.\n{rows} ~ We want to compare {keys}. <Make a table> of these lines:\n{rows} ~ {rows}\n\nThe same <as a Markdown table>; headings: {keys} ~ <Table, Markdown>, {keys}, a row for each line:\n{rows} ~ Can I see this <as a table>? The headings are {keys}.\n{rows} ~ These are notes on {keys}. <Put them in a Markdown table.>\n{rows} ~ Let a <Markdown table> show {keys}:\n{rows}''')
CSV = asks(r'''CSV of {keys}, <{head}>:\n{rows} ~ {rows}\n\nAs CSV, please, {keys}, <{head}>. ~ Convert this to CSV ({keys}), <{head}>.\n{rows} ~ csv pls, {keys}, <{head}>\n{rows} ~ I want to import {keys} into a spreadsheet. CSV, <{head}>:\n{rows} ~ Write {keys} as comma separated values, <{head}>.\n{rows} ~ {rows}\nMake CSV of that, <{head}>. The columns are {keys}. ~ Columns: {keys}. Format: CSV, <{head}>.\n{rows} ~ Could you turn these lines into CSV, <{head}>? Columns: {keys}.\n{rows} ~ Each line gives {keys}. I need CSV, <{head}>.\n{rows} ~ For my export: {keys} as CSV, <{head}>.\n\n{rows} ~ Please return only CSV, <{head}>, with {keys}:\n{rows} ~ Put commas between {keys} and give me CSV, <{head}>.\n{rows} ~ From every line I need {keys}. Use CSV, <{head}>.\n{rows} ~ {rows}\n\n{keys} in CSV, <{head}>, no comments.
My tool reads CSV, <{head}>. The columns must be {keys}.\n{rows} ~ Lines to CSV, <{head}>. Order of the columns: {keys}.\n{rows} ~ Here are some records:\n{rows}\nI'd like CSV, <{head}>, with {keys}. ~ Change this to a CSV file, <{head}> ({keys}).\n{rows} ~ Save as CSV, <{head}>: {keys}\n{rows} ~ What is this as CSV, <{head}>? Take {keys}.\n{rows} ~ One CSV line for each line here, {keys}, <{head}>.\n{rows} ~ Reformat the following into CSV, <{head}>.\nColumns: {keys}\n\n{rows} ~ CSV, <{head}>, nothing around it. Columns {keys}.\n{rows} ~ The database takes CSV, <{head}>. Please prepare {keys}:\n{rows} ~ Extract {keys} to CSV, <{head}>.\n{rows} ~ {rows}\nto csv, <{head}>, columns {keys} ~ Use the CSV format, <{head}>, for {keys}.\n{rows} ~ Give me the CSV, <{head}>. It has {keys}.\n{rows}
We need {keys} separated by commas, CSV style, <{head}>.\n{rows} ~ How would you write these lines in CSV, <{head}>? I mean {keys}.\n{rows} ~ Excel can open CSV, so: {keys}, <{head}>.\n{rows} ~ Transform the list to CSV, <{head}>, in the order {keys}.\n{rows} ~ CSV time. <{head}>, please. {keys}:\n{rows} ~ I send you lines, you send me CSV, <{head}>, with {keys}.\n{rows} ~ Rewrite it all with commas, as CSV, <{head}>. Columns {keys}.\n{rows} ~ Only {keys} should be in the CSV, <{head}>.\n{rows} ~ Data for a CSV file, <{head}>, columns {keys}:\n{rows} ~ {rows}\n\nCould I get {keys} of that in CSV, <{head}>? ~ Commas, please: CSV with {keys}, <{head}>.\n{rows}''')
BULLETS = asks(r'''List these <with {mark} as the bullet>: {items} ~ <Put {mark} before each>, one per line: {items} ~ {items}\n\n<Every line should begin with {mark}.> ~ bullets pls <with {mark}>: {items} ~ Make a list <that uses {mark}>: {items} ~ My editor wants <{mark} as the bullet>. Items: {items} ~ Could you <start each with {mark}>? One per line. {items} ~ A bullet list, <the mark is {mark}>: {items} ~ Write each on its own line <after {mark}>: {items} ~ {items}\nAs bullets, <mark {mark}>, please. ~ No numbers, <use {mark}>, in a list: {items} ~ Show {items} as lines, <each with {mark} in front>. ~ Bullet points, <but with {mark}>: {items} ~ I don't like the usual bullets. <Take {mark}> for these: {items} ~ Split into lines <that start with {mark}>: {items} ~ Format as a list. <Bullet: {mark}>\n{items}
Please write {items} as a list <with {mark} at the beginning of each line>. ~ In our minutes, list items <begin with {mark}>. Write these that way: {items} ~ <{mark} and a blank before every entry>, one entry per line: {items} ~ Turn this into a list <marked with {mark}>: {items} ~ The list has to <use the character {mark}>: {items} ~ {items}\n\nA list of that, <{mark} on the left>, please. ~ Lines, not commas, <and {mark} in front>: {items} ~ Itemize <with {mark}>: {items} ~ How do these look as a list <with {mark} bullets>? {items} ~ <Use {mark} for the bullets.> My items are these: {items} ~ One per line <and {mark} before it>: {items} ~ Type {items} under each other, <{mark} first>. ~ Here are my items: {items}\nPlease <add {mark} in front of each> and use a new line for each.
I need a bulleted list. <Bullets look like this: {mark}> The entries: {items} ~ For my slide: {items}, as bullets <with {mark}>. ~ Print one item per line, <prefix {mark}>: {items} ~ <Prefix every item with {mark}> and break the lines: {items} ~ can u list {items} <with {mark} as bullet> ~ The bullet in this file <is {mark}>. So write these items as a list: {items} ~ <A list with {mark}>, please, and no commas: {items} ~ Let every item start <with {mark}>, one below the other: {items} ~ I like my bullets <to be {mark}>. The items are {items}. ~ {items}\n<{mark} for each>, line by line ~ Make bullets of it, <using {mark}>: {items}''')
NUMBERED = asks(r'''Number these <like {style}>: {items} ~ A numbered list <with {style}>, please: {items} ~ {items}\n\nOne per line, <numbered {style}> and so on. ~ Use <{style}> for the numbering: {items} ~ number them <{style}> pls: {items} ~ List {items}, <numbered in the style {style}>. ~ Enumerate <with {style}>, a line each: {items} ~ Our manual numbers steps <as {style}>. Do it for these: {items} ~ {items}\nWrite them under each other <with {style} in front>. ~ I want <{style} etc.> before these, one per line: {items} ~ The entries are {items}. Could you write a list <with {style}>? ~ Put <{style}> in front of the items, each on a new line: {items} ~ Numbered list, <numbers like {style}>: {items} ~ Not just any list: <{style}>, please. {items} ~ Make it a numbered list <({style} ...)>: {items}
Keep the order and number the lines <{style}>: {items} ~ Please count these <as {style}>, line by line: {items} ~ In a contract we write <{style}> before the points, a line each. The points: {items} ~ Here come the items: {items}. <Number them {style}.> One line each. ~ Format: one per line, <labels {style}>. Items: {items} ~ <{style}> is how the list should go: {items} ~ Add labels <{style}> to this list, an entry per line: {items} ~ Use separate lines <starting with {style}>: {items} ~ Agenda with <{style}>: {items} ~ These are my options, {items}. Label them <{style}> in a list. ~ From top to bottom, <{style}>: {items} ~ How would a list of {items} look <with the labels {style}>? ~ Each of these needs a label <such as {style}>; write a list: {items}
Answers of a quiz, <labelled {style}>, one per line: {items} ~ My teacher wants <{style}>. List: {items} ~ Turn {items} into a list <with {style} as the numbers>. ~ Give every item a line <and a label, {style}>: {items} ~ {items} => list this <with {style}> ~ Order as given, <labels {style}>, one per line: {items} ~ Write the following as a list <that goes {style}>: {items} ~ {items}\nA line for each, please, <beginning {style}> ~ We label things <{style}> here, one to a line. The things: {items} ~ Label line by line, <{style}>: {items} ~ I want to refer to these later, so <label them {style}>, one per line: {items} ~ A list, <with the numbering {style}>: {items}''')
SORT = asks(r'''Sort these <{order}>: {items} ~ Put the {things} <{order}>. {items} ~ {items}\n\n<Sorted {order}>, please. ~ The {things} should be listed <{order}>: {items} ~ sort <{order}> pls: {items} ~ I need these {things} <{order}>: {items} ~ Could you arrange these {things} <{order}>? {items} ~ My list is a mess. Give it back <{order}>: {items} ~ Order: <{order}>. {things}: {items} ~ Write the same {things} again, <{order}>: {items} ~ {items}\nHow does this list read <{order}>? ~ Here are some {things}: {items}\nSort them <{order}>. ~ Rearrange <{order}>: {items} ~ We file our {things} <{order}>. Please do so with these: {items} ~ Bring these {things} into order, <{order}>: {items} ~ <{order}>, please: {items} ~ Only the sorted list, <{order}>. {items} ~ List the {things} <{order}>. {items} ~ {items} - all of them <{order}>, please. ~ I'd like to see the {things} <{order}>. They are: {items} ~ Can you sort these {things} <{order}>? {items} ~ Nobody sorted these {things}: {items}\nThey belong <{order}>.
For the index, the {things} have to go <{order}>: {items} ~ Please order the following {things} <{order}>.\n{items} ~ Reorder so that it goes <{order}>: {items} ~ What is the right order, <{order}>? {items} ~ Line them up <{order}>: {items} ~ sort({items}), <{order}> ~ Our table shows {things} <{order}>. In which order do these come? {items} ~ Take these {things} and write them <{order}>: {items} ~ Same {things}, but <{order}>: {items} ~ Help me sort this <{order}>: {items} ~ I have {things} to write down <{order}>: {items} ~ Would you return these {things} <{order}>? {items} ~ These {things} aren't in order. I want them <{order}>. {items} ~ Please give me these <{order}>, I don't have time to sort: {items} ~ must be sorted, <{order}>: {items} ~ Sorting job: {things}, <{order}>. {items} ~ New order, please, <{order}>: {items} ~ So many {things}! Let's have them <{order}>: {items}''')
REVERSE = asks(r'''<Reverse> this list: {items} ~ Write these <in reverse order>: {items} ~ {items}\n\n<Backwards>, please, the last entry first. ~ <The last comes first>, the first comes last: {items} ~ <reverse> pls: {items} ~ <Turn the order around>: {items} ~ I need this list <the other way round>: {items} ~ Could you list these <from the last to the first>? {items} ~ <Flip the order> of the entries. {items} ~ We go <back to front> through this list: {items} ~ Read it <from the end>: {items} ~ Our tour goes back <the opposite way>. The stops were: {items}\nWrite them in that order. ~ Give the same entries <in the opposite order>: {items} ~ Start <with the last one> and end with the first one: {items} ~ <Invert the order>: {items}
The newest should be on top, so <reverse the list>: {items} ~ {items}\nNow <the same list backwards>. ~ <In reverse>, only the list: {items} ~ My list is <upside down>. Please turn it over: {items} ~ reversed([{items}]) - <what's the result>? Just the entries. ~ I wrote these down <in the wrong direction>. Reverse them: {items} ~ <Last to first>: {items} ~ Can you say this list <in backward order>? {items} ~ Please mirror the list, <the final entry goes first>: {items} ~ Entries: {items}\nOrder wanted: <reversed> ~ Swap the direction, so that the list <begins with its last entry>: {items} ~ What do you get <if you reverse> these? {items} ~ <Order: last, ..., first.> The list: {items} ~ Take the entries <from right to left>: {items}
Undo it step by step, <backwards>. The steps were: {items} ~ <Don't sort, just reverse>: {items} ~ We count down, so <reverse the order> of this: {items} ~ <Backwards order>, same entries: {items} ~ I'd like the list <with its order reversed>. {items} ~ Begin at the end: <reverse it>. {items} ~ It's in the wrong order, <reverse it> for me: {items} ~ First is last <and last is first>. Rewrite: {items} ~ The list <from bottom to top>, please: {items} ~ Could I have that <in reversed order>? {items} ~ {items}\nSay them <backwards>, the last one first.''')
DEDUPE = asks(r'''<Remove the duplicates>: {items} ~ {items}\n\n<Each only once>, please. ~ Some entries are there twice. <Drop the repetitions>: {items} ~ <dedupe> this: {items} ~ I typed some things twice. <Clean up>: {items} ~ Write the list <without repeating anything>: {items} ~ <Unique entries only>, in the same order: {items} ~ Could you <take out what is repeated>? {items} ~ Keep <the first of each> and delete the rest: {items} ~ Which <different entries> are there? {items} ~ <No duplicates>, please. {items} ~ {items}\nPlease <delete the doubles>. ~ My guest list has <people or things more than once>. Fix it: {items} ~ <Every entry should appear once>: {items} ~ The list must <not have anything twice>: {items}
<Get rid of the copies> in this list: {items} ~ Show me <what is left without duplicates>: {items} ~ Same list, but <no entry twice>: {items} ~ unique({items}), <keep the order> ~ The export <contains duplicates>; I need it without: {items} ~ I'd like this list <with the duplicates gone>. {items} ~ <Distinct values>, please: {items} ~ Merge <equal entries> into one: {items} ~ Somebody copied lines twice. <Leave every entry in only once>: {items} ~ <Strike out repeats>: {items} ~ Tidy this list, <each thing one time>: {items} ~ Please give me <only distinct entries> of: {items} ~ Can you <filter out the duplicates>? {items} ~ Go through it and <skip what was there before>: {items}
<Without the double ones>: {items} ~ Here is my list: {items}\n<One of each is enough.> ~ Reduce the list <to its unique entries>. {items} ~ The shop counts things double. <Once each>: {items} ~ Make this a list <where nothing is repeated>: {items} ~ <Eliminate duplicates>. Only the list. {items} ~ I don't want anything <twice in my list>: {items} ~ <Leave out what has come before>: {items} ~ {items}\nSome are repeated. <List each only once.> ~ Remove <what is there a second time>. {items} ~ A <list without doubles>, please: {items}''')
FILTER = asks(r'''Keep only <{what}>: {items} ~ {items}\n\nOnly <{what}>, please. ~ Which of these are <{what}>? {items} ~ Give me <{what}> and leave out the rest. {items} ~ just <{what}> pls: {items} ~ List <{what}>: {items} ~ Delete everything but <{what}>. {items} ~ From this list I need <{what}>: {items} ~ Could you pick out <{what}>? {items} ~ {items}\nI only care about <{what}>. ~ Filter: <{what}>. List: {items} ~ Copy <{what}> from here: {items} ~ Find <{what}> in this list: {items} ~ Show <{what}>, nothing else. {items} ~ Throw out all except <{what}>: {items} ~ My list: {items}\nWhat remains if I take <{what}> alone? ~ We need <{what}> for a report. {items} ~ Write down <{what}>. The whole list is: {items} ~ Reduce it to <{what}>: {items} ~ Select <{what}>: {items} ~ Please return <{what}>, in the same order: {items}
Can you tell me <{what}> among these? {items} ~ Extract <{what}>: {items} ~ Here's everything: {items}\nNow only <{what}>. ~ I'm looking for <{what}>. {items} ~ Take <{what}> from the following: {items} ~ Shorten the list, leaving <{what}>: {items} ~ Out of these, I want <{what}>. {items} ~ Search for <{what}> and list them: {items} ~ What are <{what}> here? {items} ~ The rest is not needed, only <{what}>: {items} ~ Hi, can I have <{what}> of this list? {items} ~ Name <{what}>: {items} ~ grep <{what}>: {items} ~ Everything must go but <{what}>. {items} ~ Make a shorter list with <{what}>: {items} ~ My boss asked for <{what}>. {items} ~ Let me see <{what}>. {items} ~ {items}\n\nI want a list of <{what}>. ~ Ignore all others, list <{what}>: {items}''')
PICK = asks(r'''Only <{which}>, please: {items} ~ What is <{which}> here? {items} ~ Give me <{which}> of this list: {items} ~ {items}\n\n<Just {which}.> ~ Write down <{which}> and nothing more: {items} ~ <{which}> pls, only that: {items} ~ Take <{which}> from these: {items} ~ Copy <{which}>, skip everything else. {items} ~ From this list I need <{which}>: {items} ~ Could you name <{which}>? {items} ~ I have a list: {items}\nI want <{which}> of it. ~ Answer with <{which}>. List: {items} ~ Look at the list and tell me <{which}>. {items} ~ Leave only <{which}>: {items} ~ Return <{which}>: {items} ~ Cut this down to <{which}>. {items} ~ Say <{which}>, no sentence. {items} ~ In this list, {items}, <{which}> matters. Write it. ~ Extract <{which}>: {items} ~ {items}\nReply with <{which}> only. ~ Which is <{which}>? {items}
I'm only interested in <{which}>. {items} ~ Pick <{which}>: {items} ~ Of these, I just want <{which}>: {items} ~ Our queue is: {items}\nPlease give <{which}>. ~ Find <{which}> in the following. {items} ~ Show me <{which}> alone: {items} ~ <{which}> is enough for me. {items} ~ Drop all but <{which}>: {items} ~ Please read the list and repeat <{which}>: {items} ~ The list goes: {items}\nCan you write out <{which}>? ~ Don't give me everything, only <{which}>. {items} ~ Get <{which}>: {items} ~ Let me have <{which}>. {items} ~ Print <{which}> of the list, without comment: {items} ~ hey, <{which}> of these? {items} ~ All I need is <{which}>. {items} ~ Tell me <{which}> in here: {items} ~ Would you write <{which}>? {items} ~ For the title I need <{which}>: {items}''')
EACH = asks(r'''Put each of these <in {how}>: {items} ~ {items}\n\n<Each in {how}>, please. ~ <Every entry needs {how}> around it: {items} ~ <{how} around each> pls: {items} ~ Write the list again <with {how} around every entry>. {items} ~ Add <{how}> to each entry: {items} ~ I need <{how}> around all of these, one by one: {items} ~ Could you <enclose every item in {how}>? {items} ~ The format wants <{how}> around each name or word: {items} ~ <Wrap each in {how}>: {items} ~ Not the whole list, but <each entry in {how}>: {items} ~ Set <{how} around every single one>: {items} ~ My query needs every value <in {how}>. Values: {items} ~ {items}\nPlease use <{how}> for each of them. ~ <Use {how}>, separately for each entry: {items}
Surround each item <with {how}>: {items} ~ How does this list look <with each entry in {how}>? {items} ~ Same list, <each one between {how}>: {items} ~ Change nothing but <put {how} around the entries>: {items} ~ All of these should stand <in {how}>, each on its own: {items} ~ <In {how}>, each: {items} ~ Entries: {items}\nEach one <gets {how}>. ~ Type these <with {how} around each>: {items} ~ Mark every entry <with {how}>, before and after: {items} ~ Can you write these so that <each has {how} around it>? {items} ~ For my code, <{how} around each item>, please: {items} ~ I forgot <the {how}> around the entries. Add them: {items} ~ Every one of these <goes in {how}>: {items} ~ Let each entry stand <between {how}>. {items}
List with <{how} around each element>: {items} ~ Please repeat the list and put <{how} round each word or name>. {items} ~ The list: {items}\nNow <every entry in {how}>. ~ I'd like <{how} for every entry>. {items} ~ Items go <inside {how}>, one pair for each: {items} ~ Each separately <in {how}>, same order: {items} ~ Give these back <in {how}, one by one>: {items} ~ {items}\nadd <{how} around each> one ~ These look better <each in {how}>: {items} ~ My teacher wants <every one of them in {how}>. {items} ~ Please decorate each entry <with {how}> on both sides: {items}''')
COUNT = asks(r'''How many are these? Answer <"{phrase}">, N being the number. {items} ~ Count the entries and <write "{phrase}">, where N is the number: {items} ~ {items}\n\nCount them. <Form of the answer: {phrase}> (N = how many). ~ Your answer must <read "{phrase}">, with the number for N. Entries: {items} ~ Fill in N: <{phrase}>. The list is {items} ~ <{phrase}> - what is N? Write it all, with the number of these: {items} ~ Please count and reply <in the form "{phrase}">. {items} ~ count pls, <say "{phrase}"> with the number instead of N: {items} ~ Number of entries? <Write {phrase}>, only with the right N. {items} ~ How long is this list? <Use the words "{phrase}">, N is the length. {items} ~ My script looks for <"{phrase}">. Put the number of entries for N: {items}
<Always answer "{phrase}">, N replaced by the count. {items} ~ Count: {items}\n<Output format: {phrase}>, where N stands for a number ~ I want to know how many there are, <as "{phrase}"> (put a number for N). {items} ~ Replace N <in "{phrase}"> by the number of entries: {items} ~ Here are some entries: {items}\nHow many? <Answer like "{phrase}">, with N counted. ~ Tell me the number of entries <with exactly this: {phrase}>. N is that number. {items} ~ Go through the list, count, and <finish "{phrase}"> with a number for N. Only that. {items} ~ <"{phrase}"> is all you should say, N being how many I list: {items} ~ Could you count these and <say "{phrase}">? N is of course the number. {items} ~ The label says <"{phrase}">. N should be the number of: {items}
A list: {items}\nA form: <{phrase}>\nWrite the form with the number of entries for N. ~ We report counts <as "{phrase}">, with a number for N. Report this one: {items} ~ Use <"{phrase}"> to say how many entries this has (N is a number): {items} ~ <{phrase}>, please, N = number of entries in: {items} ~ Entries: {items}\nCount them <and complete: {phrase}> (N is the count) ~ Don't list them again, <just write "{phrase}"> with how many for N: {items} ~ What number is N <in "{phrase}">, if this is the list? Give the whole phrase. {items} ~ With N as the count, <answer "{phrase}">. {items} ~ Check how many I've got and <use this wording: {phrase}>. N is for the number. {items} ~ Stick to <"{phrase}">, with N as a number. How many entries? {items}
Sum it up <as "{phrase}"> where N means how many there are: {items} ~ I only accept <"{phrase}">, N filled in. How many are there? {items} ~ Please <reply with "{phrase}">. For N, count these: {items} ~ hi! count this list and <write {phrase}>, N is the number: {items} ~ Number of things below, <in the style "{phrase}"> (N = number).\n{items} ~ Let N be the number of entries. <Then write "{phrase}".> {items} ~ {items}\n\nHow many? <Say it as {phrase}>, N is for the number. ~ Give the count <in this form: {phrase}> (N: number). {items} ~ The line I need is <"{phrase}">, with a number where N is. Count: {items}''')
REPLACE = asks(r'''Replace <"{old}" by "{new}">: {text} ~ {text}\n\nChange <{old} to {new}>, please. ~ Write this sentence <with {new} instead of {old}>: {text} ~ It should say <{new}, not {old}>: {text} ~ <{old} -> {new}>\n{text} ~ swap <{old} for {new}> pls: {text} ~ In "{text}", put <{new} for {old}>. ~ Correct this: it isn't <{old} but {new}>. {text} ~ Could you change <the word {old} into {new}>? {text} ~ Same sentence, only <"{new}" where it says "{old}">. {text} ~ s/<{old}/{new}>/ on this: {text} ~ Wherever you see <{old}, write {new}>. {text} ~ I made a mistake, <{old} must be {new}>: {text} ~ Find <{old} and replace it with {new}>: {text} ~ Take out <{old}, put in {new}>. {text} ~ Sentence: {text}\nOld word: <{old}, new word: {new}>
Rewrite this, but <use {new} in place of {old}>. {text} ~ {text} Oh no, I meant <{new} and not {old}>. Write it again. ~ How does it read <if "{old}" becomes "{new}">? {text} ~ Exchange <{old} with {new}> and leave the rest as it is: {text} ~ Please edit: <"{old}" becomes "{new}">. {text} ~ The word <"{old}" is wrong, "{new}" is right>. Fix this: {text} ~ Repeat the sentence <with "{new}" for "{old}">: {text} ~ Let's say <{new} rather than {old}>: {text} ~ Substitute <{new} for {old}>. {text} ~ Here's my note: {text}\nIt needs <{new} instead of {old}>. ~ I'd rather write <{new} than {old}> here: {text} ~ Only one change, <from {old} to {new}>. {text} ~ Can you <put {new} where {old} is>? {text}
Find: <{old}. Replace: {new}.> Text: {text} ~ Edit my line <from {old} to {new}>: {text} ~ Type this again, <{new} replacing {old}>: {text} ~ My boss wants <{new} in it, not {old}>. {text} ~ Don't touch anything except <{old}, which should be {new}>. {text} ~ Update the sentence, <"{old}" is now "{new}">: {text} ~ {text}\nNew version <with {new} for {old}>? ~ Text: {text}\nChange: <{old} to {new}> ~ It was not <{old}, it was {new}>. Write it again: {text} ~ pls <put {new} instead of {old}>: {text} ~ I'd like this again <with the word {new} for {old}>. {text}''')
FILL = asks(r'''<Fill in>: {body}\n{values} ~ {values}\n\n<Put that into the template>: {body} ~ The template is "{body}" <Use these values>: {values} ~ <Complete the text> with {values}\n{body} ~ <fill this out> pls\n{body}\n{values} ~ Here's our standard text:\n{body}\n<Insert> {values} ~ I have a form letter: {body}\nToday <it goes with> {values} ~ <Replace the placeholders>. {values}\n\n{body} ~ Could you <write this with the blanks filled>? {body}\n{values} ~ Template: {body}\nData: {values}\n<Result?> ~ <Use the template> exactly: {body}\nThe data: {values} ~ Given {values}\nWhat does <"{body}" become>? ~ <Fill the gaps in>:\n{body}\n\nwith\n{values} ~ Please <make the message from this template>: {body}\n{values} ~ We send everyone the same: {body}\n<This time>: {values}
{body}\n\n<Set> {values} ~ My mail program <needs the fields filled>. {values}\nMail: {body} ~ <Merge> the data with the text. Text: {body}\nData: {values} ~ <Substitute> {values}\nin this text: {body} ~ Text with placeholders: {body}\nValues: {values}\n<Write the finished text.> ~ {values}\n<Now the letter>, please: {body} ~ <Personalize this>: {body}\n{values} ~ Take {values}\nand <complete> this one: {body} ~ Only the finished text, please. <Fill> {body}\nwith {values} ~ <Render the template>.\n{body}\n{values} ~ Let me have <the final version> of this: {body}\nThe values are {values} ~ In the following, <put the values in their places>.\n{body}\n{values} ~ <What will it say> after filling in? {body}\n{values}
I need <this card with real data>: {body}\nData is {values} ~ Hi! <Please finish> my text: {body}\nUse {values} ~ <Write it out> for me with {values}\n{body} ~ The words in marks are <to be replaced>. {body}\n{values} ~ Values first: {values}\nThen the text <to fill>: {body} ~ <Don't change anything but the placeholders>.\n{body}\n{values} ~ <Insert the data> into my reply:\n{body}\n{values} ~ One <filled-in copy> of this, please: {body}\n{values} ~ {body}\n\n<The fields are> {values} ~ Can you <complete my card>? {body}\n{values} ~ We have {values}\nWhat is <the complete text>? {body} ~ <Apply> {values}\nto: {body}''')
BODIES = asks(r'''Dear {name}, your {product} is ready. Please come to {city}. ~ Hi {name}, see you on {day} in the {room}. ~ Dear {name}, thank you for the {product}. ~ Hello {name}, the {event} is on {day}. ~ The {event} was moved to {day}. Ask {name}. ~ {name} will bring {count} {goods} on {day}. ~ Good morning {name}, we have {count} {goods} left in {city}. ~ Dear guests, the {room} is closed on {day}. ~ Greetings from {city}! I bought {goods} for {name}. ~ To {name}: the {product} in the {room} is broken. ~ Welcome to {city}, {name}! ~ Dear {name}, you owe me {count} dollars for the {product}. Yours, {other} ~ {name} and {other} meet in {city} on {day}. ~ Invitation: {event} in the {room}, {day}. ~ Thanks, {name}! The {goods} from {city} were great. ~ {other}, please call {name} about the {event}. ~ Sorry, {name}, I can't come on {day}. Best wishes, {other}''')
DATES = asks(r'''Write {date} <like {example}>. ~ {date} <in the form {example}>, please. ~ Change the date {date} to the notation <of {example}>. ~ <as in {example}>: {date} ~ Our forms have dates <such as {example}>. The date is {date}. ~ I write dates <like this: {example}>. Rewrite {date}. ~ {date}\n\nSame date, <format as in "{example}">. ~ How do I write {date} <in the style of {example}>? ~ Convert {date}, <format example: {example}> ~ Please turn {date} into <the format of {example}>. ~ My calendar only reads dates <like {example}>. What is {date} there? ~ date: {date}, <wanted like {example}> ~ Could you reformat {date}? <It should look like {example}.> ~ <Pattern: {example}.> Date to convert: {date} ~ The others in the list <look like {example}>, so {date} must too.
Only the date, please, <in the notation "{example}">: {date} ~ Reformat: {date} <(as {example})> ~ {date} -> <same style as {example}> ~ We use <{example}> and the like. A colleague wrote {date}. Fix the style. ~ Given {date}, <write it the way "{example}" is written>. ~ If the style is <{example}>, what does {date} become? ~ Bring {date} <into the shape of {example}>. ~ Here is a date: {date}. <Use the format of {example}.> ~ <{example}> is our format. Now {date}, please. ~ Type {date} <as one would type {example}>. ~ The database stores <dates like {example}>. Store {date}. ~ Put this date <in the same form as {example}>: {date} ~ Can you write the day {date} <in a form like {example}>? ~ date notation pls, <like {example}>: {date}
Adapt {date} to this <sample: {example}>. ~ The invoice says {date}, but I need it <written like {example}>. ~ Sample: <{example}>. Input: {date}. Output? ~ I know dates <in the form "{example}">. Tell me {date} that way. ~ Express {date} <in the same format as {example}>. ~ Rewrite the date. <Model: {example}.> Date: {date} ~ Normalize {date}, <the target looks like {example}>. ~ Dates here look <like {example}>. How should I enter {date}? ~ Change {date} so that it looks <like {example}>. ~ <Follow this example: {example}>. The date is {date}. ~ {date} in the notation <of the example {example}>, please.''')

MARKS = str.maketrans('<>', '\x01\x02')
QUOTED = re.compile('\x01(.*?)\x02', re.DOTALL)

THOUGHTS = asks('''The user says "{quote}". {work} ~ "{quote}", so that is the form. {work} ~ It says "{quote}". {work} ~ [The form|What decides]: "{quote}". {work} ~ {work} The form is "{quote}". ~ I read "{quote}". {work} ~ [Asked|Wanted] is "{quote}". {work} ~ {work} And it says "{quote}"[, so nothing else|]. ~ The message has "{quote}" in it. {work} ~ "{quote}". {work}''')


def form(rng, templates, work, answer, right, **fields):
    """Returns the task of a request for a form.  work is what the reasoning
    copies from the request; right(text) is true for a right answer."""

    template = expand(rng, rng.choice(templates)).translate(MARKS)
    ends, begins = template[-1] in '.?!', template[0] in '{\x01'

    if rng.random() < 0.5:
        template = rough(rng, template)

    user = template.format(**fields)
    quote = QUOTED.search(template)[1].rstrip('.,:?').format(**fields)
    user = user.replace('\x01', '').replace('\x02', '')
    user = user.replace(' \n', '\n').strip()

    if re.match('\x01?{(which|how|order|head|what)}', template):
        user = capital(user)

    if ends:
        user = manner(rng, user, begins)
    elif not begins and rng.random() < 0.15:
        user = user[0].lower() + user[1:]

    at = user.lower().find(quote.lower())
    mark = "'" if '"' in quote else '"'
    thoughts = expand(rng, rng.choice(THOUGHTS)).replace('"', mark).format(
        quote=user[at:at + len(quote)], work=work)

    def gold(mode):
        yield Step('' if mode == CHAT else thoughts, answer)

    def check(text, calls):
        if calls:
            return 'there was nothing to call'

        return None if right(text) else f'not "{quote}": {text}'

    return task(rng, 'daily_format', 'single', [Turn(user, check, gold)], {},
                (RETAIN, CHAT), True)


# facts: how the value of a key is drawn, and sentences with the same keys

FIRST, PLACES = names.FIRST, names.PLACES
DAYS = happen.DAYS.split('|')
VALUES = {
    'name': FIRST, 'customer': FIRST, 'traveler': FIRST, 'person': FIRST,
    'winner': FIRST, 'loser': FIRST, 'other': FIRST, 'city': PLACES,
    'origin': PLACES, 'destination': PLACES, 'product': names.PRODUCTS,
    'goods': names.GOODS, 'item': names.GOODS, 'event': names.EVENTS,
    'room': names.ROOMS, 'task': names.ERRANDS, 'day': DAYS, 'time': clock,
    'age': range(2, 99), 'price': range(2, 900), 'count': range(2, 400),
    'points': range(2, 300), 'phone': range(10000, 999999),
    'email': lambda rng: f'{strings.letters(rng)}@{names.syllables(rng)}.com'}
FACTS = tuple(map(asks, '''
{name} is {age} years old and lives in {city}. ~ I met {name} in {city}, who is {age}. ~ My neighbor {name} turned {age} and moved to {city}. ~ {name}, {age}, comes from {city}. ~ In {city} there is a dentist called {name}, aged {age}. ~ Our new colleague is {name} from {city}, {age} years old. ~ I'm {age}, my name is {name} and I live in {city}. ~ At {age}, {name} still likes to live in {city}.
{customer} ordered the {product} for {price} dollars. ~ The {product} costs {price} dollars, and {customer} wants it. ~ We sold the {product} to {customer}. The price was {price} dollars. ~ For {price} dollars, {customer} got the {product}. ~ {customer} paid {price} dollars for the {product}. ~ {price} dollars is what {customer} gave for the {product}.
The {event} is on {day} at {time} in the {room}. ~ On {day} at {time} we have the {event}, in the {room}. ~ Come to the {room} on {day}, the {event} begins at {time}. ~ {day}, {time}, {room}: that is when and where the {event} is. ~ Don't forget the {event} in the {room}! It starts at {time} on {day}. ~ We moved the {event} to {day} at {time}. It is in the {room}.
There are {count} {item} in the {room}. ~ In the {room} I counted {count} {item}. ~ Somebody put {count} {item} in the {room}. ~ The {room} has {count} {item}. ~ We keep our {item} in the {room}, {count} at the moment. ~ {count} {item} are waiting in the {room}.
{traveler} flies from {origin} to {destination} on {day}. ~ On {day}, {traveler} leaves {origin} and goes to {destination}. ~ {traveler} booked a train from {origin} to {destination} for {day}. ~ The trip of {traveler} starts in {origin} on {day} and ends in {destination}. ~ From {origin} to {destination}, that is the plan of {traveler} for {day}. ~ To {destination} by bus: {traveler} starts on {day} in {origin}.
{person} has to {task} by {day}. ~ On {day}, {person} wants to {task}. ~ Please remind {person} to {task} on {day}. ~ It was agreed that {person} will {task} on {day}. ~ {person} promised to {task} before {day}. ~ Who will {task}? That is {person}, on {day}.
{winner} beat {loser} with {points} points. ~ {loser} lost to {winner}, who had {points} points. ~ With {points} points, {winner} won against {loser}. ~ The winner is {winner} with {points} points, the loser is {loser}. ~ It was {winner} who won with {points} points, and {loser} who lost. ~ {loser} had no chance: {winner} made {points} points and won.
{name} has the number {phone} and the address {email}. ~ You reach {name} at {phone} or {email}. ~ {email} and {phone} both belong to {name}. ~ Write to {email} or call {phone} and ask for {name}. ~ The contact is {name}, phone {phone}, mail {email}. ~ Call {name}: {phone}. Mail goes to {email}.'''.strip().splitlines()))


def drawn(rng, template):
    """Returns a dict with different texts for the fields of a template."""

    while True:
        fact = {k: VALUES[k] for k in re.findall(r'\{(\w+)\}', template)}
        fact = {k: str(v(rng) if callable(v) else rng.choice(v))
                for k, v in fact.items()}

        if len(set(fact.values())) == len(fact):
            return fact


def chosen(rng):
    """Returns a fact, its sentence, and what is asked for in its order."""

    sentence = rng.choice(rng.choice(FACTS))
    fact = drawn(rng, sentence)
    wanted = rng.sample(sorted(fact), rng.randint(2, len(fact)))

    return fact, capital(sentence.format(**fact)), {
        k: fact[k] for k in wanted}


def joined(rng, words, mark=''):
    words = [f'{mark}{w}{mark}' for w in words]

    return ', '.join(words[:-1]) + rng.choice((', ', ' and ')) + words[-1]


def same(said, wanted):
    """Returns true if a value is the wanted one; a price may have its unit."""

    return str(said).lower() == wanted.lower() or wanted.isdigit() and \
        re.fullmatch(rf'\$?{wanted}(\.0+)?( [a-z]+)?', str(said)) is not None


def typed(value):
    return int(value) if value.isdigit() and value[0] != '0' else value


def parsed(text):
    """Returns the value of JSON, with or without a fence, else None."""

    try:
        return json.loads(re.sub(r'^```\w*$', '', text, flags=re.MULTILINE))
    except ValueError:
        return None


def fits(said, wanted):
    return isinstance(said, dict) and sorted(map(str.lower, said)) == sorted(
        wanted) and all(same(v, wanted[k.lower()]) for k, v in said.items())


def told(fact):
    return ', '.join(f'{k}: {v}' for k, v in fact.items()) + '.'


def facts(rng):
    """Facts of a sentence as a JSON object or as lines."""

    _, text, wanted = chosen(rng)
    as_json, empty = rng.random() < 0.6, rng.choice(('...', '""', '?', 'null'))
    lines = '\n'.join(f'{k}: {v}' for k, v in wanted.items())
    answer = json.dumps({k: typed(v) for k, v in wanted.items()},
                        ensure_ascii=False, indent=rng.choice((None, None, 2)))

    def right(said):
        return fits(parsed(said) if as_json else dict(re.findall(
            r'^[-* ]*(\w+)[* ]*:[* ]*(.*?) *$', said, re.MULTILINE)), wanted)

    return form(rng, AS_JSON if as_json else KEY_LINES, told(wanted),
                answer if as_json else lines, right, text=text,
                keys=joined(rng, wanted, rng.choice(('', '', '"'))),
                shape='{' + ', '.join(f'"{k}": {empty}' for k in wanted) + '}'
                if as_json else '\n'.join(f'{k}: ...' for k in wanted))


def only(rng):
    fact, text, _ = chosen(rng)
    key = rng.choice(sorted(fact))

    return form(rng, ONLY, f'The {key} is {fact[key]}.', fact[key],
                lambda said: said.strip(' ."\n').lower() == fact[key].lower(),
                text=text, key=key)


HEADED = asks('with a header ~ with a header line ~ header included ~ with the '
              'column names first ~ the first line being the header ~ with '
              'headings ~ including the header ~ header line included')
BARE = asks('without a header ~ no header ~ without the header line ~ just the '
            'data rows ~ without column names ~ no heading line ~ with no '
            'header ~ leaving out the header')


def cells(text, sign):
    """Returns the cells of the lines of an answer, in small letters."""

    return [[c.strip() for c in s.strip().strip('|').split(sign)] for s in
            re.sub(r'```\w*', '', text).strip().lower().splitlines()]


def records(rng):
    """Rows as a JSON array of objects, a table, or CSV."""

    sentences = rng.choice(FACTS)
    told = [drawn(rng, sentences[0]) for _ in range(rng.choice((2, 2, 3)))]
    wanted = rng.sample(sorted(told[0]), rng.choice((2, 3, 3)))
    rows = [{k: f[k] for k in wanted} for f in told]
    sign = rng.choice(('; ', ' / ', ' - ', ' = ', '\t'))
    text = '\n'.join(sign.join(r.values()) for r in rows)

    if rng.random() < 0.3:
        text = '\n'.join(capital(rng.choice(sentences).format(**f))
                         for f in told)

    head, form_of = wanted, rng.choice((OBJECTS, TABLE, CSV, CSV))
    headed = form_of is TABLE or rng.random() < 0.5
    grid = [head] * headed + [list(r.values()) for r in rows]

    if form_of is OBJECTS:
        answer = json.dumps([{k: typed(v) for k, v in r.items()}
                             for r in rows], ensure_ascii=False)
    elif form_of is CSV:
        answer = '\n'.join(map(','.join, grid))
    else:
        grid.insert(1, ['---'] * len(head))
        answer = '\n'.join(f'| {" | ".join(row)} |' for row in grid)

    def right(said):
        if form_of is OBJECTS:
            found = parsed(said)

            return isinstance(found, list) and len(found) == len(rows) \
                and all(map(fits, found, rows))

        sign = ',' if form_of is CSV else '|'
        said = re.sub(':?---+:?', '---', said)

        return cells(said, sign) == cells(answer, sign)

    return form(rng, form_of, f'{len(rows)} lines: ' + '; '.join(
        ', '.join(r.values()) for r in rows) + '.', answer, right, rows=text,
        keys=joined(rng, head), head=rng.choice(HEADED if headed else BARE),
        n=rng.choice((len(head), ('two', 'three')[len(head) - 2])))


# lists

POOLS = (FIRST, PLACES, names.GOODS, names.PRODUCTS, names.LANGUAGES,
         names.ROOMS, names.EVENTS, names.ERRANDS)


def words(rng, least=3, most=6, pools=POOLS):
    """Returns the different entries of a list."""

    return rng.sample(rng.choice(pools), rng.randint(least, most))


def shown(rng, template, items):
    """Returns a list as a text, and what divides its entries: a new line if
    it is at the end of a template or of a line."""

    lines = re.search(r'\{items\}(\n|$)', template)
    sign = rng.choice((', ', ', ', '; ', *['\n', '\n', '\n'] * bool(lines)))
    before = '\n' if sign == '\n' else ''

    return before + sign.join(items), sign


def entries(text):
    """Returns the entries of an answer, whatever divides them."""

    return [re.sub(r'^([-*] |\d+[.)] )', '', s.strip()).strip(' .').lower()
            for s in re.split(r'[\n,;]| and ', text) if s.strip()]


def lists(rng, templates, items, work, wanted, **fields):
    """Returns the task of a list whose answer is a list in the same form."""

    template = rng.choice(templates)
    text, sign = shown(rng, template, items)
    answer = sign.join(wanted)

    return form(rng, (template,), work, answer,
                lambda said: entries(said) == entries(answer), items=text,
                **fields)


def marked(rng):
    """Bullets with a given mark, or numbers of a given style."""

    items = words(rng)
    text = ', '.join(items[:-1]) + rng.choice((', ', ' and ')) + items[-1]
    mark = rng.choice('- * + • > ~ o # => -> -- ** :: x »'.split())
    style = rng.choice(('1)', '(1)', 'a)', 'A.', 'A)', '#1', '1:', '1 -',
                        '(a)', 'Step 1:', 'No. 1', '[1]'))
    labels = [re.sub('1|(?<![a-z])[aA](?![a-z])', lambda m: str(i + 1)
                     if m[0] == '1' else chr(ord(m[0]) + i), style)
              for i in range(len(items))]
    bullets = rng.random() < 0.5
    answer = '\n'.join(f'{mark if bullets else label} {x}'
                       for label, x in zip(labels, items))

    return form(rng, BULLETS if bullets else NUMBERED,
                f'{len(items)} lines, the first is {answer.splitlines()[0]}',
                answer, lambda said: said.strip().lower() == answer.lower(),
                items=text, mark=rng.choice((f'"{mark}"', mark)),
                style=', '.join(labels[:rng.choice((2, 3))]))


ORDERS = {(True, False): asks('alphabetically ~ from A to Z ~ in alphabetical order ~ by the alphabet'),
          (True, True): asks('from Z to A ~ in reverse alphabetical order ~ alphabetically, but backwards'),
          (False, False): asks('from small to large ~ in ascending order ~ with the smallest first ~ from the lowest to the highest'),
          (False, True): asks('from large to small ~ in descending order ~ with the largest first ~ from the highest to the lowest')}


def sort(rng):
    by_name, down = rng.random() < 0.6, rng.random() < 0.35
    pool, things = rng.choice(((FIRST, 'names'), (PLACES, 'towns'),
                               (names.GOODS, 'words'),
                               (names.LANGUAGES, 'languages')))
    items = [x for x in rng.sample(pool, 8) if re.fullmatch('[A-Za-z]+', x)] \
        if by_name else [str(n) for n in rng.sample(range(
            1, rng.choice((30, 100, 1000))), 6)]
    items = list({x.lower(): x for x in items}.values())[:rng.randint(3, 6)]
    wanted = sorted(items, key=str.lower if by_name else int, reverse=down)
    work = 'First letters: ' + ', '.join(x[0].upper() for x in wanted) \
        if by_name else f'{"Largest" if down else "Smallest"} is ' \
        + ', then '.join(wanted)

    return lists(rng, SORT, items, work + '.', wanted,
                 things=things if by_name else 'numbers',
                 order=rng.choice(ORDERS[by_name, down]))


def reverse(rng):
    items = words(rng)

    return lists(rng, REVERSE, items, f'It ends with {items[-1]}.',
                 items[::-1])


def dedupe(rng):
    wanted = words(rng, 3, 4)
    twice = rng.sample(wanted, rng.randint(1, 2))
    items = list(wanted)

    for x in twice:
        items.insert(rng.randint(items.index(x) + 1, len(items)), x)

    return lists(rng, DEDUPE, items, f'Twice: {", ".join(twice)}.',
                 list(dict.fromkeys(items)))


def keep(rng):
    """Keeps the entries that begin with a letter, or certain numbers."""

    if rng.random() < 0.5:
        items = rng.sample(rng.choice((FIRST, PLACES, names.GOODS)), 6)
        letter = rng.choice(items)[0].upper()
        what = f'the ones that {rng.choice(("start", "begin"))} with {letter}'
        fits = [x[0].upper() == letter for x in items]
    else:
        items = [str(n) for n in rng.sample(range(1, 200), 6)]
        n, more = int(rng.choice(items)), rng.random() < 0.5
        n += -1 if more else 1
        what = rng.choice(('the numbers over {}', 'the ones above {}',
                           'the numbers greater than {}') if more else
                          ('the numbers under {}', 'the ones below {}',
                           'the numbers less than {}')).format(n)
        fits = [int(x) > n if more else int(x) < n for x in items]

    return lists(rng, FILTER, items, ', '.join(
        f'{x} {"yes" if fit else "no"}' for x, fit in zip(items, fits)) + '.',
        [x for x, fit in zip(items, fits) if fit], what=what)


def pick(rng):
    items = words(rng, 4)
    which, at = rng.choice((
        ('the first {}', [0]), ('the last {}', [-1]),
        ('the first and the last {}', [0, -1]), ('the second {}', [1]),
        ('the third {}', [2]), ('the second to last {}', [-2])))
    wanted = [items[i] for i in at]

    return lists(rng, PICK, items, ', '.join(
        f'{i} {x}' for i, x in enumerate(items, 1)) + '.', wanted,
        which=which.format(rng.choice(('item', 'entry', 'one'))))


AROUND = (('double quotes', *'""'), ('single quotes', *"''"),
          ('square brackets', *'[]'), ('round brackets', *'()'),
          ('curly brackets', *'{}'), ('angle brackets', *'<>'),
          ('parentheses', *'()'), ('backticks', *'``'),
          ('asterisks', *'**'), ('underscores', *'__'))


def each(rng):
    items = words(rng, 2, 5)
    how, a, b = rng.choice(AROUND)
    template = rng.choice(EACH)
    text, sign = shown(rng, template, items)
    answer = sign.join(a + x + b for x in items)

    return form(rng, (template,), f'The first is {a}{items[0]}{b}.', answer,
                lambda said: re.split(r'[\n,;] *', said.strip(' .\n'))
                == [a + x + b for x in items], items=text, how=how)


def count(rng):
    items = words(rng, 2, 7)
    phrase = rng.choice(asks(
        'Total: N ~ Count: N ~ N in all ~ N entries ~ There are N ~ Result = N'
        ' ~ N items found ~ The list has N entries ~ Sum: N ~ n=N ~ (N) ~ #N'
        ' ~ I count N ~ Number: N ~ Entries: N ~ Length N ~ N pieces'))
    template = rng.choice(COUNT)
    answer = re.sub(r'\bN\b', str(len(items)), phrase)

    return form(rng, (template,), ', '.join(
        f'{i} {x}' for i, x in enumerate(items, 1)) + '.', answer,
        lambda said: said.strip(' ."\n').lower() == answer.lower(),
        items=shown(rng, template, items)[0], phrase=phrase)


def replace(rng):
    found = []

    while not found:
        text = happen.note(rng)
        found = [(w, pool) for w in re.findall('[A-Za-z]{4,}', text)
                 for pool in (FIRST, PLACES, names.GOODS, names.NOUNS)
                 if w in pool and text.count(w) == 1]

    old, pool = rng.choice(found)
    new = next(w for w in rng.sample(pool, 2) if w != old)
    wanted = text.replace(old, new)

    return form(rng, REPLACE, f'"{old}" becomes "{new}".', wanted,
                lambda said: said.strip(' ."\n') == wanted.rstrip('.'),
                text=text, old=old, new=new)


def fill(rng):
    body = rng.choice(BODIES)
    fact = drawn(rng, body)
    a, b = rng.choice(('[]', '{}', '<>', ('{{', '}}'), ('$', ''), '__', '%%'))
    answer = body.format(**fact)
    sign, end = rng.choice(((' = ', ', '), (': ', '\n'), (': ', ', '),
                            ('=', '; ')))
    values = [f'{k}{sign}{v}' for k, v in fact.items()]

    return form(rng, FILL, told(fact), answer,
                lambda said: said.strip(' "\n') == answer,
                body=body.format(**{k: a + k + b for k in fact}),
                values=end.join(rng.sample(values, len(values))))


NOTATIONS = ('%Y-%m-%d', '%d.%m.%Y', '%m/%d/%Y', '{d} %B %Y', '%B {d}, %Y',
             '{d} %b %Y', '%Y/%m/%d', '%b {d}, %Y', '%d-%b-%Y')


def date(rng):
    day, other = (datetime.date(1950, 1, 1) + datetime.timedelta(
        rng.randrange(36000)) for _ in 'ab')
    day, other = day.replace(day=rng.randrange(1, 29)), other.replace(
        day=rng.randrange(13, 29))
    given, wanted = rng.sample(NOTATIONS, 2)

    if given == '%m/%d/%Y':
        day = day.replace(day=rng.randrange(13, 29))

    answer = day.strftime(wanted).format(d=day.day)

    def bare(text):
        return re.sub(r'\b0', '', text.strip(' ."\n'))

    return form(rng, DATES, f'Day {day.day}, month {day.month}, '
                f'{day:%B}, year {day.year}.', answer,
                lambda said: bare(said) == bare(answer),
                date=day.strftime(given).format(d=day.day),
                example=other.strftime(wanted).format(d=other.day))


MAKERS = (facts, facts, facts, only, records, records, records, marked, marked,
          sort, sort, reverse, dedupe, keep, pick, each, count, replace, fill,
          date)
