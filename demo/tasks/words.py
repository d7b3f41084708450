# Copyright (C) The nginx-dsa authors

"""Words that more than one family of tasks uses; written for this project."""

from tasks import names
from tasks.parts import Split, drawn


PEOPLE = Split('''Ada Alma Amir Anton Arlo Bela Bruno Carla Cora Dario Dina Edda
Elias Emil Enno Fara Felix Gita Greta Hanna Hugo Ida Ilse Ines Ivo Jana Jonas
Juna Kai Karim Lara Lena Leo Lia Lotte Luca Malik Mara Mila Mona Nadia Nils
Nora Olaf Olga Oskar Paula Pia Ravi Rita Rosa Ruben Sami Selma Sofia Sven
Tara Theo Tilda Timo Uma Vera Viktor Wanda Yara Yusuf Zoe'''.split()) + names.FIRST

THINGS = Split('''anchor apple arrow basket bell blanket bottle bowl box brick
broom brush bucket button candle carpet chair clock cloth coat coin comb cork
cup curtain desk dish drum envelope feather fence flag flask flute fork frame
glass glove hammer hat helmet hook horn jar kettle key kite knife ladder lamp
lantern leaf lens lock map mask mirror mug nail needle net notebook paddle
pan pearl pen pencil pillow pin pipe plate plum pot purse ribbon ring rope
ruler sack saddle scarf screw shell shelf shirt shoe shovel sieve sock spade
spoon spring stamp stone string table tent thread ticket tile towel tray
trumpet umbrella vase violin wagon wallet wheel whistle window'''.split())

COLORS = '''amber black blue bronze brown copper coral cream gold gray green
indigo ivory lilac lime maroon olive orange pink purple red rose silver teal
turquoise violet white yellow'''.split()

# parts of made-up words, without those that easily make embarrassing ones

ONSETS = 'b bl br d dr g gr h j k kl l m n pl pr r sk sn st tr v w z'.split()
VOWELS = 'a e i o u ai ea io ou'.split()
CODAS = ['', '', '', *'d l ll m n r rt st'.split()]

# a city's name is a beginning and an end, so that there are more names than a
# model could learn by heart

CITY_HEAD = '''Al Ar Bel Ber Bor Bri Cal Car Cor Dal Dor El Fal Far Gal Gor
Hal Har Hel Il Jor Kal Kar Kel Lan Lin Lor Mal Mar Mel Mor Nal Nor Ol Or Pal
Per Por Ral Ros Sal Sel Sor Tal Tar Tor Ul Val Var Vel Vor Wal Wes Yar Zel
Zor'''.split()

CITY_TAIL = '''bach berg bridge burg by dale den don fell field ford furt gate
grad ham haven heim holm hurst ia kirk land lin low mar mere mont mouth na
nes ona port ra rin rock sand sea sted stow ta ton vale vik ville wald well
wick wood worth'''.split()


def cities(rng, n):
    """Returns n different names."""

    names = []

    while len(names) < n:
        name = drawn(rng, lambda: rng.choice(CITY_HEAD)
                     + rng.choice(CITY_TAIL))
        if name not in names:
            names.append(name)

    return names


def made_up(rng):
    """Returns a made-up word, so that skills with words are not learned for
    some words only."""

    return drawn(rng, lambda: ''.join(
        rng.choice(ONSETS) + rng.choice(VOWELS) + rng.choice(CODAS)
        for _ in range(rng.choice((1, 2, 2, 3)))))
