# Copyright (C) The nginx-dsa authors

"""Days and times of the day, as people write them."""

from tasks.uses import one_of


DAY = ('today|tomorrow|tonight|Monday|Tuesday|Wednesday|Thursday|Friday'
       '|Saturday|Sunday|next Monday|next Friday')


def clock(rng):
    hour, minute = rng.randrange(1, 13), rng.choice(('00', '15', '30', '45'))

    return one_of(rng, f'{hour} [am|pm]|{hour}:{minute}'
                       f'|{hour:02}:{minute}|{hour + 11}:{minute}')


def day(rng):
    return one_of(rng, DAY)
