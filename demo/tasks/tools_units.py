# Copyright (C) The nginx-dsa authors

"""Conversion of units.

A unit is a linear function to the base unit of its quantity: base = (value +
offset) * factor.  Only temperatures have an offset.
"""

from dataclasses import dataclass
from fractions import Fraction

from tasks.tools_calc import short


@dataclass(frozen=True)
class Unit:
    """
    measures  'length', 'weight', ...
    names     the short form, the singular and the plural"""
    measures: str
    short: str
    one: str
    many: str
    factor: Fraction
    offset: Fraction = Fraction(0)

    def names(self):
        return (self.short, self.one, self.many)


def unit(measures, names, factor, offset='0'):
    return Unit(measures, *names.split(), Fraction(factor), Fraction(offset))


# gallon and cup are those of the United States

UNITS = (
    unit('length', 'mm millimeter millimeters', '1/1000'),
    unit('length', 'cm centimeter centimeters', '1/100'),
    unit('length', 'm meter meters', '1'),
    unit('length', 'km kilometer kilometers', '1000'),
    unit('length', 'in inch inches', '0.0254'),
    unit('length', 'ft foot feet', '0.3048'),
    unit('length', 'yd yard yards', '0.9144'),
    unit('length', 'mi mile miles', '1609.344'),
    unit('weight', 'g gram grams', '1/1000'),
    unit('weight', 'kg kilogram kilograms', '1'),
    unit('weight', 't ton tons', '1000'),
    unit('weight', 'oz ounce ounces', '0.028349523125'),
    unit('weight', 'lb pound pounds', '0.45359237'),
    unit('volume', 'ml milliliter milliliters', '1/1000'),
    unit('volume', 'l liter liters', '1'),
    unit('volume', 'cp cup cups', '0.2365882365'),
    unit('volume', 'gal gallon gallons', '3.785411784'),
    unit('time', 's second seconds', '1'),
    unit('time', 'min minute minutes', '60'),
    unit('time', 'h hour hours', '3600'),
    unit('time', 'd day days', '86400'),
    unit('time', 'wk week weeks', '604800'),
    unit('temperature', 'K kelvin kelvin', '1'),
    unit('temperature', 'C celsius celsius', '1', '273.15'),
    unit('temperature', 'F fahrenheit fahrenheit', '5/9', '459.67'),
)

BY_NAME = {name.lower(): u for u in UNITS for name in u.names()}
BY_SHORT = {u.short: u for u in UNITS}

LARGEST = 10 ** 9


def convert(number, from_unit, to_unit):
    """Returns {"result": number, "unit": to_unit}.  Units may have any of
    their names.  Raises ValueError."""

    return {'result': converted(number, find(from_unit), find(to_unit)),
            'unit': to_unit}


def convert_short(number, from_unit, to_unit):
    """Does the same for a stricter tool, which accepts short names only."""

    for name in (from_unit, to_unit):
        if name not in BY_SHORT:
            raise ValueError(f'unknown unit: {name[:40]}; known: '
                             + ', '.join(BY_SHORT))

    return convert(number, from_unit, to_unit)


def find(name):
    """Returns the Unit with this name."""

    if name.lower() not in BY_NAME:
        raise ValueError(f'unknown unit: {name[:40]}; known: '
                         + ', '.join(u.many for u in UNITS))

    return BY_NAME[name.lower()]


def converted(number, from_unit, to_unit):
    """Returns the converted number in the form for JSON."""

    if from_unit.measures != to_unit.measures:
        raise ValueError(f'{from_unit.many} measure {from_unit.measures}, '
                         f'{to_unit.many} {to_unit.measures}')

    if not abs(number) <= LARGEST:      # rejects NaN, too
        raise ValueError('number too large')

    # from the text, so that 0.1 is exactly a tenth and not the nearest double

    base = (Fraction(str(number)) + from_unit.offset) * from_unit.factor

    return short(base / to_unit.factor - to_unit.offset)
