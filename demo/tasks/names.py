# Copyright (C) The nginx-dsa authors

"""Names of people and places in many countries, and words of daily life.  The
lists are long, and names are composed beside them, so that a model must copy a
word instead of remembering it."""

from tasks.parts import Names, Split


def listed(text, compose=None):
    """Returns the Split of the entries between commas, or their Names."""

    words = (' '.join(w.split()) for w in text.split(','))

    return Split(words) if compose is None else Names(words, compose)


STARTS = """b bl br c ch cl d dr f fl g gl gr h j k kl kr l m n p pl pr qu r s
sh sk st str t th tr v w y z""".split()
VOWELS = 'a a a a e e e e i i i o o o o u u ai au ea ee ei ia ie oo ou'.split()
ENDS = ['', '', '', '', '', '', '', '', *'''b ck d k l ll m m n n nd ng nk nt p
r r rd rk rn s s ss st t th x z'''.split()]


ACCENTS = tuple(pair.split() for pair in (
    'a á', 'a ã', 'a ä', 'a å', 'e é', 'e è', 'e ê', 'i í', 'o ó', 'o ö', 'o ø',
    'u ü', 'u ú', 'c ç', 'n ñ', 's š', 'z ž', 'l ł', 'ss ß'))


def syllables(rng):
    """Returns a word of random syllables."""

    return ''.join(part for _ in range(rng.choice((1, 2, 2, 3))) for part in (
        rng.choice(STARTS), rng.choice(VOWELS), rng.choice(ENDS)))


def halves(rng, words):
    """Returns the beginning of one word and the end of another."""

    a, b = rng.choice(words), rng.choice(words)
    at = rng.randint(1, max(1, len(a) - 1))

    return (a[:at] + b[rng.randint(1, max(1, len(b) - 1)):]).strip(" -'")


def one_name(rng, words):
    """Composes a name of one word, with a capital."""

    word = halves(rng, words) if rng.random() < 0.5 else syllables(rng)

    if rng.random() < 0.12:
        plain, accented = rng.choice(ACCENTS)
        word = word.replace(plain, accented)

    return word.split()[0].capitalize() if word else rng.choice(words)


def place(rng, words):
    """Composes the name of a town."""

    name = one_name(rng, words)

    if rng.random() < 0.3:
        name = rng.choice((
            'New {}', 'San {}', 'Port {}', 'Saint {}', 'Upper {}', 'El {}',
            '{} City', '{} Bay', '{} Falls', '{} Springs', 'Lake {}')).format(
                name)

    return name


def crossed(rng, words):
    """Composes a phrase of the first word of one and the other words of
    another."""

    a, b = rng.choice(words).split(), rng.choice(words).split()

    return ' '.join(dict.fromkeys(a[:1] + (b[1:] or b)))


def file_name(rng, words):
    """Composes the name of a file or folder, without an ending."""

    a = syllables(rng) if rng.random() < 0.3 else rng.choice(words)
    b = rng.choice(words) if rng.random() < 0.6 else str(rng.randint(1, 2030))

    return a + rng.choice(('_', '-', '')) + b


FIRST = Names('''Aaron Abbas Abel Abigail Adam Adele Adil Adriana Agnes Ahmed
Aiko Aileen Aisha Akira Alan Albert Alejandro Alena Alessia Alexei Alfred Ali
Alice Alicia Alina Alison Alvaro Amanda Amara Amelia Amina Amy Ana Anastasia
Andre Andrea Andrew Angela Angelo Anita Anja Anna Anne Annika Antonia Anya
Archie Ariel Arjun Armando Arthur Arturo Astrid Audrey Aurora Austin Ayesha
Barbara Bart Basil Beatrice Ben Benjamin Bernard Bianca Bilal Bjorn Blanca Bob
Boris Brandon Brenda Brian Bridget Bryan Caleb Camila Camille Carl Carlos
Carmen Caroline Catherine Cecilia Cedric Celine Chandra Charles Charlotte Chen
Chiara Chidi Chris Christa Christian Christine Claire Clara Claudia Colin
Connor Constance Craig Curtis Cynthia Daisy Damian Dana Daniel Daniela Danny
Daphne Darius David Dean Deborah Deepak Delia Denise Dennis Derek Diana Diego
Dmitri Dominic Donna Dora Doris Dorothy Douglas Dylan Edgar Edith Eduardo Edwin
Eileen Elaine Elena Eleanor Eli Elisa Elizabeth Ella Ellen Elsa Emily Emma
Emmanuel Enrique Eric Erika Ernest Esther Ethan Eugene Eva Evelyn Ezra Faith
Farah Farid Fatima Faye Felicity Fernando Fiona Flora Florence Frances
Francesca Francis Frank Fred Frida Gabriel Gabriela Gareth Gary Gavin Gemma
George Georgia Gerald Gianna Gina Giovanni Gisela Gloria Gordon Grace Graham
Greg Guillermo Gunnar Gustav Habiba Hadi Hamza Hannah Haruto Harry Hassan Hazel
Heather Hector Heidi Helen Helena Helga Henry Herman Hilda Hiroshi Holly Howard
Ian Ibrahim Igor Imani Imran Indira Inga Ingrid Irene Iris Isaac Isabel Isla
Ivan Ivana Jack Jacob Jacqueline Jakob James Jamila Jan Jane Janet Janice Jared
Jasmine Jason Javier Jean Jenna Jennifer Jens Jeremy Jerome Jesse Jessica Jill
Jin Joan Joanna Joel Johan Johanna John Jordan Jorge Jose Josef Joseph Josh
Joyce Juan Judith Julia Julian Julie Juliet June Justin Kaito Kamal Karen Karin
Karl Kate Katja Katherine Kathleen Kavita Keiko Keith Kelly Ken Kenji Kevin
Khalid Kimberly Kiran Kirsten Klaus Kofi Kwame Kyle Laila Lakshmi Larry Latifa
Laura Lauren Laurence Layla Leah Leila Leon Leonard Leonie Leslie Lewis Liam
Lillian Lily Linda Linus Lisa Lorenzo Louis Louise Lucas Lucia Lucy Luis Luisa
Lukas Lydia Lynn Mads Magnus Maja Malcolm Manuel Mara Marc Marcel Marco Marcus
Margaret Maria Mariam Marie Marina Mario Marion Marta Martha Martin Martina
Mary Mateo Matilda Matthew Maurice Max Maya Megan Mehmet Mei Melanie Melissa
Mercedes Michael Michelle Miguel Mikael Milan Milena Mina Miranda Miriam
Mohamed Molly Monica Morgan Moses Murat Nadine Nancy Naomi Natalia Natalie
Nathan Neil Nelson Nicholas Nicole Niklas Nikolai Nina Noah Noel Noor Norman
Oliver Olivia Omar Oscar Otto Owen Pablo Pamela Patricia Patrick Paul Pauline
Pavel Pedro Penelope Peter Petra Philip Phoebe Pierre Priya Rachel Rafael Rahul
Raj Ralph Ramon Rania Raquel Rashid Raymond Rebecca Regina Renata Rene Ricardo
Richard Rick Robert Roberta Robin Rodrigo Roger Roland Romy Ronald Rosalind
Rosemary Ross Rowan Roy Rudolf Russell Ruth Ryan Sabine Sadie Said Salma
Salvador Sam Samantha Samuel Sandra Sanjay Sara Sasha Scott Sean Sebastian
Serena Sergei Seth Shanti Sharon Shirin Sibylle Sidney Silas Silvia Simon
Simone Sofie Sonia Sophie Stanley Stefan Stella Stephen Steven Stuart Sunil
Susan Susanna Sylvia Tamara Tanya Tariq Tatiana Teresa Terry Theresa Thomas
Tiffany Tim Timothy Tina Tobias Tomas Toni Tracy Tristan Umar Ursula Valentina
Valerie Vanessa Vera Veronica Vicente Victor Victoria Vikram Vincent
Virginia Vivian Vladimir Walter Wendy Werner Wilhelm Will William Winston
Xavier Yan Yasmin Yolanda Yuki Yuri Yvonne Zachary Zahra Zainab Zara
Zelda'''.split(), one_name)

LAST = Names('''Abbott Adeyemi Ahmadi Aguilar Almeida Amari Andersen Archer
Arnold Atkins Avila Baker Banerjee Barber Barnes Bauer Becker Bell Bennett Berg
Bianchi Bishop Blake Bondar Boyd Bradley Brennan Brooks Burke Bush Calder
Campos Cardoso Carlsen Carter Castillo Chang Chaudhry Choi Clarke Cohen Cole
Conti Cook Cooper Costa Crawford Cruz Dahl Dalton Davies Delgado Desai Diallo
Dimitrov Dixon Dubois Duarte Dunn Eriksen Esposito Evans Farrell Ferrari
Fischer Fleming Fletcher Fontaine Forsyth Fournier Foster Fraser Fuchs Fujita
Garcia Gardner Gibson Gill Gomez Gordon Graham Greco Griffin Gupta Gutierrez
Haas Hall Hansen Harper Harris Hartmann Hayashi Henderson Herrera Hoffmann Holm
Horvat Howell Hughes Hunt Ibsen Iqbal Ito Ivanova Jackson Jacobs Jensen Jimenez
Johansson Jones Joshi Kaplan Kato Kaur Keller Kelly Khan Kim King Klein
Kowalski Kruger Kumar Lambert Larsen Laurent Lee Lehmann Leroy Lewis Lindgren
Lopez Lund Maier Malone Marino Marsh Martinez Mason Mbeki Mehta Mendes Mercier
Meyer Mills Mitchell Mohan Molina Moore Morales Moretti Morris Mueller Murphy
Nair Nakamura Navarro Nelson Neumann Nguyen Nielsen Nkosi Nolan Norris Obi
Okafor Olsen Ortega Osman Owens Palmer Papas Park Parker Patel Pereira Perez
Petersen Phillips Popescu Porter Powell Price Quinn Rahman Ramirez Ramos Rao
Reid Ricci Richter Rivera Roberts Rodriguez Rojas Romano Roth Russo Saito
Salazar Sanchez Santos Sato Schmidt Schneider Schulz Shah Sharma Shaw Simmons
Singh Smith Sokolov Soto Stein Stewart Suzuki Svensson Takahashi Tanaka Taylor
Thomas Thompson Torres Tran Tucker Turner Vargas Vega Virtanen Wagner Walker
Wallace Walsh Wang Ward Watson Webb Weiss West White Williams Wilson Winter
Wolf Wong Wood Wright Xu Yamada Yang Yilmaz Young Zhang Zhou Ziegler
Zimmermann'''.split(), one_name)

PLACES = listed('''Aachen, Aarhus, Aberdeen, Abidjan, Abu Dhabi, Accra,
Adelaide, Agadir, Aleppo, Algiers, Alicante, Almaty, Amman, Amsterdam,
Anchorage, Ankara, Antwerp, Asheville, Asuncion, Athens, Atlanta, Auckland,
Austin, Baku, Bamako, Bangalore, Bangkok, Barcelona, Bari, Basel, Basra, Bath,
Beijing, Beirut, Belfast, Belgrade, Bergen, Berlin, Bern, Bilbao, Birmingham,
Bogota, Bologna, Bonn, Bordeaux, Boston, Brasilia, Bratislava, Bremen, Brest,
Brighton, Brisbane, Bristol, Brno, Bruges, Brussels, Bucharest, Budapest,
Buenos Aires, Buffalo, Bursa, Busan, Cairo, Calgary, Cali, Cambridge, Canberra,
Cape Town, Caracas, Cardiff, Casablanca, Catania, Charleston, Chengdu, Chennai,
Chicago, Chisinau, Christchurch, Cincinnati, Cleveland, Cologne, Colombo,
Copenhagen, Cordoba, Cork, Coventry, Cusco, Dakar, Dallas, Damascus, Darwin,
Davos, Delhi, Denver, Detroit, Dhaka, Dijon, Doha, Dortmund, Dresden, Dubai,
Dublin, Dubrovnik, Dundee, Durban, Dushanbe, Edinburgh, Edmonton, Eindhoven, El
Paso, Espoo, Essen, Exeter, Faro, Fez, Florence, Frankfurt, Freiburg, Fresno,
Fukuoka, Galway, Gdansk, Geneva, Genoa, Ghent, Glasgow, Goa, Gothenburg,
Granada, Graz, Grenoble, Groningen, Guadalajara, Halifax, Hamburg, Hamilton,
Hanoi, Hanover, Harare, Havana, Heidelberg, Helsinki, Hiroshima, Hobart, Hong
Kong, Honolulu, Houston, Hull, Incheon, Indianapolis, Innsbruck, Inverness,
Isfahan, Islamabad, Istanbul, Izmir, Jaipur, Jakarta, Jeddah, Jena, Jerusalem,
Johannesburg, Kabul, Kampala, Kandy, Kansas City, Karachi, Kathmandu, Katowice,
Kazan, Keelung, Kiel, Kigali, Kingston, Kinshasa, Kobe, Kochi, Kolkata, Krakow,
Kuala Lumpur, Kyiv, Kyoto, La Paz, Lagos, Lahore, Las Vegas, Lausanne, Leeds,
Leicester, Leipzig, Lille, Lima, Limerick, Linz, Lisbon, Liverpool, Ljubljana,
Lodz, London, Los Angeles, Luanda, Lucerne, Lusaka, Luxembourg, Lviv, Lyon,
Macau, Madison, Madrid, Malaga, Male, Malmo, Managua, Manchester, Manila,
Maputo, Marrakesh, Marseille, Medellin, Melbourne, Memphis, Mexico City, Miami,
Milan, Milwaukee, Minneapolis, Minsk, Modena, Mombasa, Monaco, Monterrey,
Montevideo, Montreal, Montpellier, Mosul, Mumbai, Munich, Muscat, Nagasaki,
Nagoya, Nairobi, Nanjing, Nantes, Naples, Nashville, New Orleans, New York,
Newcastle, Nice, Nicosia, Nottingham, Novi Sad, Nuremberg, Oakland, Odense,
Odessa, Omaha, Oporto, Oran, Orlando, Osaka, Oslo, Ottawa, Oulu, Oxford, Padua,
Palermo, Palma, Panama City, Paris, Parma, Penang, Perth, Perugia,
Philadelphia, Phoenix, Pisa, Pittsburgh, Plovdiv, Plymouth, Portland, Porto,
Potsdam, Poznan, Prague, Pretoria, Pune, Quebec, Quito, Rabat, Ravenna,
Reading, Recife, Reno, Reykjavik, Rhodes, Riga, Rimini, Rio de Janeiro, Riyadh,
Rome, Rosario, Rostock, Rotterdam, Rouen, Sacramento, Salvador, Salzburg,
Samara, San Antonio, San Diego, San Francisco, San Jose, Santa Fe, Santiago,
Santo Domingo, Sao Paulo, Sapporo, Sarajevo, Savannah, Seattle, Seoul, Seville,
Shanghai, Sheffield, Shenzhen, Siena, Singapore, Skopje, Sofia, Southampton,
Split, St Gallen, Stavanger, Stockholm, Strasbourg, Stuttgart, Surat, Suva,
Swansea, Sydney, Taipei, Tallinn, Tampa, Tampere, Tangier, Tashkent, Tbilisi,
Tehran, Tel Aviv, The Hague, Thessaloniki, Tirana, Tokyo, Toledo, Toronto,
Toulouse, Trento, Trieste, Tripoli, Tromso, Trondheim, Tucson, Tunis, Turin,
Turku, Ulm, Uppsala, Utrecht, Valencia, Valletta, Vancouver, Varna, Venice,
Verona, Vienna, Vigo, Vilnius, Warsaw, Washington, Wellington, Winnipeg,
Wroclaw, Wuhan, Yerevan, Yokohama, York, Zagreb, Zaragoza, Zurich''', place)

LANGUAGES = listed('''Arabic, Bengali, Bulgarian, Catalan, Croatian, Czech,
Danish, Dutch, Estonian, Finnish, French, Georgian, German, Greek, Hebrew,
Hindi, Hungarian, Icelandic, Irish, Italian, Japanese, Korean, Latvian,
Lithuanian, Malay, Norwegian, Persian, Polish, Portuguese, Romanian, Russian,
Serbian, Slovak, Spanish, Swahili, Swedish, Tamil, Thai, Turkish, Ukrainian,
Urdu, Vietnamese, Welsh, Zulu''')

# name in the plural -> ISO code

CURRENCIES = {
    'US dollars': 'USD', 'dollars': 'USD', 'euros': 'EUR', 'pounds': 'GBP',
    'British pounds': 'GBP', 'yen': 'JPY', 'Swiss francs': 'CHF',
    'Swedish kronor': 'SEK', 'Norwegian kroner': 'NOK',
    'Danish kroner': 'DKK', 'Polish zloty': 'PLN', 'Indian rupees': 'INR',
    'Canadian dollars': 'CAD', 'Australian dollars': 'AUD', 'yuan': 'CNY',
    'Mexican pesos': 'MXN', 'Turkish lira': 'TRY', 'Czech koruna': 'CZK',
    'Brazilian reais': 'BRL', 'South African rand': 'ZAR'}

# goods in the plural, so that "one of the {goods}" and counts work

GOODS = listed('''apples, apricots, avocados, bagels, balloons, bananas, beans,
biscuits, blueberries, books, bricks, bulbs, buns, buttons, cabbages, cakes,
candles, cards, carrots, chairs, cherries, chestnuts, chocolates, coins,
cookies, crackers, crates, croissants, cucumbers, cups, cushions, dates,
donuts, eggs, envelopes, erasers, figs, flowers, forks, glasses, gloves,
grapes, hats, jars, keys, knives, lamps, leaves, leeks, lemons, lentils,
letters, limes, lollipops, magnets, mangoes, marbles, matches, melons, muffins,
mugs, mushrooms, nails, napkins, notebooks, nuts, olives, onions, oranges,
pancakes, peaches, peanuts, pears, pebbles, pencils, pens, peppers, photos,
pies, pillows, pineapples, plants, plates, plums, postcards, potatoes,
pretzels, pumpkins, puzzles, radishes, raisins, ribbons, rings, rolls, roses,
sandwiches, scarves, seeds, shells, shirts, shoes, socks, spoons, stamps,
sticks, stickers, stones, strawberries, sweets, tables, tickets, tiles,
toffees, tomatoes, towels, toys, tulips, turnips, umbrellas, vases, waffles,
walnuts, watermelons''')

PRODUCTS = listed('''air fryer, alarm clock, backpack, bathrobe, bed frame,
bicycle, bicycle helmet, blender, board game, bookshelf, camera, camping stove,
car seat, card reader, charger, coffee grinder, coffee machine, computer mouse,
cooler, curtain rod, cutting board, desk, desk lamp, dishwasher, doormat,
drill, drone, duvet, electric kettle, electric scooter, external drive, fan,
fish tank, fitness tracker, flashlight, flower pot, folding chair, food
processor, freezer, frying pan, gaming chair, garden hose, garden table,
guitar, hair dryer, hammock, hand mixer, headphones, heater, hiking boots,
humidifier, ironing board, jigsaw puzzle, juicer, keyboard, kitchen scale,
ladder, laptop, laptop stand, lawn mower, leather belt, mattress, measuring
tape, microphone, microwave, monitor, mosquito net, office chair, oven, paint
roller, phone case, phone holder, piano stool, picture frame, pillow, power
bank, pressure cooker, printer, projector, radio, rain jacket, raincoat, record
player, rice cooker, router, rucksack, running shoes, sander, saucepan,
screwdriver set, sewing machine, shelf, shower curtain, skateboard, sleeping
bag, smart plug, smartwatch, soldering iron, speaker, standing desk, step
stool, suitcase, sunglasses, surfboard, swimsuit, tablet, teapot, telescope,
television, tennis racket, tent, thermometer, thermos flask, toaster, tool box,
travel pillow, tripod, trolley, turntable, USB cable, vacuum cleaner, violin,
waffle iron, wall clock, wardrobe, washing machine, watch, watering can,
webcam, wheelbarrow, wine rack, wok, yoga mat''', crossed)

TOPICS = listed('''acoustic guitars, air quality, allergies in spring, ancient
Rome, apple pruning, aquariums for beginners, back pain at the desk, bamboo
flooring, bat conservation, battery recycling, beekeeping, bicycle lanes, bike
repair, bird migration, black tea, board games for two, bread without yeast,
bridge building, budget travel, butterfly gardens, camping with children,
carbon taxes, cat training, cave paintings, cheap flights, cheese making, chess
openings, child safety seats, city gardening, clay houses, coastal erosion,
coffee roasting, cold brew coffee, comet sightings, composting, coral reefs,
cross-country skiing, cyber security basics, deep sea fish, desert plants,
digital cameras, dog breeds, drought resistant crops, dry skin, earthquake
safety, electric buses, electric cars, email etiquette, energy saving bulbs,
family budgets, fermented food, ferry routes, film restoration, first aid,
flood barriers, folk dances, food waste, forest fires, fossil hunting, free
online courses, garden birds, geothermal heat, glacier hikes, glass recycling,
gluten free baking, grape varieties, green roofs, hair loss, hay fever, heat
pumps, hiking trails, historic trains, home insulation, home offices, honey
bees, hot springs, house plants, hydrogen trucks, ice skating, indoor climbing,
insect hotels, jazz history, job interviews, kayaking, kite festivals, knitting
patterns, language exams, lava lamps, learning the piano, library opening
hours, lighthouses, local elections, low salt diets, marathon training,
medieval castles, meteor showers, minimalism, mobile payments, modern
architecture, moon landings, mosaic tiles, mountain huts, mushroom picking,
music therapy, night trains, noise protection, north sea islands, nut
allergies, oat milk, ocean currents, old maps, olive oil, online privacy, opera
tickets, organic farming, paper folding, passport renewal, pension plans, pet
insurance, photo books, plastic waste, plum recipes, pollen counts, pottery
classes, public libraries, quilting, rabbit care, radio astronomy, rain
barrels, recycled paper, remote work, rent control, rice cultivation, river
cruises, robot vacuums, rock climbing, roof repairs, rowing clubs, sailing
knots, salt marshes, school meals, scuba diving, sea turtles, secondhand
clothes, seed banks, sheep farming, shoe repair, silent films, sleep tracking,
slow cookers, snow chains, soap making, solar eclipses, solar panels, sourdough
bread, space telescopes, speed reading, spring flowers, stargazing, steam
engines, street art, sugar substitutes, summer festivals, sundials, sustainable
fishing, swimming lessons, tax returns, tea ceremonies, tenant rights, tidal
power, time management, tomato diseases, train strikes, tree planting, tropical
fruit, urban foxes, used bikes, vegan cheese, vertical farms, vintage cars,
volcano tours, volunteer work, walking shoes, water filters, weather balloons,
weight training, whale watching, wild garlic, wind farms, window cleaning,
winter tires, wood stoves, wool carpets, yoga for beginners, zero waste
shops''', crossed)

ERRANDS = listed('''answer the survey, book a dentist appointment, book the
flights, buy a birthday card, buy bread, buy cat food, buy stamps, call
grandma, call the bank, call the landlord, call the plumber, cancel the gym,
change the bed sheets, charge the camera, check the oil, clean the fridge,
clean the windows, collect the parcel, cut the hedge, defrost the freezer,
descale the kettle, do the laundry, empty the dishwasher, feed the fish, feed
the neighbor's cat, file the invoices, fix the tap, get a haircut, get cash,
get the car washed, hand in the essay, iron the shirts, lock the shed, mail the
contract, make a cake, mow the lawn, order new glasses, order printer ink, pack
the suitcase, paint the fence, pay the electricity bill, pay the rent, pick up
the kids, pick up the prescription, plan the menu, practice the violin, prepare
the slides, print the tickets, prune the roses, put out the recycling, read the
report, renew the library books, renew the passport, repair the bike, reply to
the tax office, return the drill, return the shoes, send the postcard, service
the boiler, sharpen the knives, sign the lease, stretch my back, submit the
timesheet, sweep the balcony, take out the trash, take the medicine, test the
smoke alarm, top up the phone, update the website, vacuum the car, visit the
museum, walk the dog, wash the curtains, feed the rabbits, wrap the presents,
write to the school''', crossed)

EVENTS = listed('''band practice, board meeting, book club, budget review, car
inspection, chess night, choir practice, code review, coffee chat, conference
call, cooking class, customer call, dance class, dentist appointment, design
review, doctor appointment, eye test, family dinner, farewell party, fire
drill, football match, French lesson, garden party, guitar lesson, haircut,
housewarming, job interview, kickoff meeting, lunch break, marketing meeting,
movie night, onboarding session, painting class, parents evening, performance
review, physio session, piano lesson, picnic, planning meeting, poker night,
press briefing, product demo, project update, quiz night, reading group,
running group, safety training, sales meeting, school concert, spanish class,
sprint review, staff meeting, standup, status meeting, supplier visit, swimming
lesson, tax consultation, team lunch, tennis match, town hall, vet appointment,
video call, wedding rehearsal, wine tasting, workshop, yoga class''', crossed)

ROOMS = listed('''attic, balcony, basement, bathroom, bedroom, cellar,
conservatory, corridor, den, dining room, entrance, garage,
garden, guest room, gym, hall, hallway, home office, kitchen, landing, laundry
room, library, living room, lounge, music room, nursery, pantry, patio,
playroom, porch, shed, stairwell, storage room, study, sunroom, terrace,
utility room, veranda, workshop''')

FOLDERS = listed('''accounts, archive, assets, backup, bin, blog, books, cache,
calendar, clients, code, config, contracts, data, design, docs, downloads,
drafts, exports, fonts, forms, home, images, inbox, invoices, lib, letters,
logs, mail, media, menus, music, notes, old, orders, papers, photos, plans,
private, projects, public, receipts, recipes, records, reports, scans, scripts,
shared, site, slides, src, taxes, temp, templates, tests, thesis, tickets,
tools, travel, uploads, videos, web, work''', file_name)

STEMS = listed('''address, agenda, album, analysis, app, article, backup,
balance, bill, birthday, bookmarks, budget, build, calendar, catalog, changes,
chapter, checklist, clients, colors, config, contacts, contract, costs, course,
cover, demo, diary, draft, essay, events, expenses, export, faq, feedback,
final, flyer, form, garden, glossary, grades, guests, guide, history, holiday,
hours, ideas, index, input, install, inventory, invoice, itinerary, journal,
letter, license, links, list, log, main, manual, map, meeting, members, memo,
menu, minutes, model, names, notes, orders, outline, output, packing, plan,
playlist, poem, policy, poster, prices, profile, project, quotes, readme,
receipt, recipe, report, results, resume, review, roadmap, rota, rules, sales,
sample, schedule, script, server, settings, shopping, sizes, speech, staff,
stats, stock, story, summary, survey, syllabus, table, tasks, team, template,
terms, test, thesis, timetable, todo, tour, travel, users, vendors, version,
visits, vocabulary, wishlist, words''', file_name)

ENDINGS = Split('''csv cfg conf css go html ini java js json log md pdf py rs
sh sql
svg toml tsv txt xml yaml yml'''.split())

ADJECTIVES = Split('''ancient bitter blue bold brave bright broken calm clever
cold crooked crystal curious dark distant dusty early electric empty endless
faded fallen fast final foggy forgotten frozen gentle ghostly golden gray green
happy hidden hollow hungry idle iron last late lazy little lonely long lost
loud lucky mellow midnight misty modern narrow nervous noble northern old open
pale paper patient plain polite proud purple quiet rapid red restless rolling
rusty sacred salty secret shy silent silver simple sleepy slow small soft
southern spare steady stormy strange sudden sunny sweet tall tender tiny tired
velvet vivid wandering warm western wild winding wise wooden young'''.split())

NOUNS = Split('''airport anchor autumn avenue balcony beacon bicycle bridge
candle canyon carnival castle cedar circus cloud coast compass corner daughter
desert diamond door echo engine evening falcon feather field fire forest
fountain fox garden gate ghost glacier guitar harbor harvest heart highway hill
horizon horse hotel island journey kingdom lake lantern letter light lighthouse
machine market meadow memory mirror moon morning mountain museum night north
ocean orchard palace parade passage piano planet rain raven river road rocket
room satellite sea season shadow ship signal sister sky smoke snow song sparrow
spring square stair star station stone storm stranger stream street summer sun
swallow thunder tide tiger tower town traffic train tree valley village voice
wagon wall water wave weather whisper wind window winter wolf yard'''.split())
