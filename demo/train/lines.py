# Copyright (C) The nginx-dsa authors

"""Files of JSON lines, each an object, to which programs append and from which
they continue."""

import json
import os


class BadLines(ValueError):
    """A file is not what the program that writes it would have written."""


def read(path):
    """Returns the objects of a file.  Raises BadLines for a line that is not
    whole or not an object."""

    found = []

    with open(path, 'rb') as f:
        for n, line in enumerate(f, 1):
            if not line.endswith(b'\n'):
                raise BadLines(f'{path}:{n}: the line is cut off; expected a '
                               'newline at its end (the program that writes '
                               'the file removes the line when it continues)')

            try:
                value = json.loads(line)
            except (ValueError, RecursionError) as e:
                raise BadLines(f'{path}:{n}: {e}; expected a JSON object') \
                    from None

            if not isinstance(value, dict):
                raise BadLines(f'{path}:{n}: expected a JSON object')

            found.append(value)

    return found


def repair(path):
    """Removes a last line that is not whole, as a program that was killed
    leaves it.  Returns how many bytes that were."""

    with open(path, 'rb+') as f:
        data = f.read()
        whole = data.rfind(b'\n') + 1
        f.truncate(whole)

    return len(data) - whole


def replace(path, values):
    """Writes a file anew; it has all of them, or is as before."""

    with open(path + '.tmp', 'w', encoding='utf-8') as f:
        f.writelines(line(v) for v in values)

    os.rename(path + '.tmp', path)


def line(value):
    return json.dumps(value, ensure_ascii=False) + '\n'
