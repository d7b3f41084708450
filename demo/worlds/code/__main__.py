# Copyright (C) The nginx-dsa authors

"""Builds every environment of the code agent, and prints in Markdown which of
them count.

    PYTHONPATH=demo python3 -m worlds.code
"""

import sys

from eval.table import grid
from worlds.code import cage, repo, repos


def main():
    rows = []

    try:
        for part, known in repos.REPOS.items():
            for r in known:
                for fault in r.faults:
                    f2p, p2f = repo.counts(repo.environment_of(r, fault))
                    rows.append([r.path, part, fault.issue[:50], str(f2p),
                                 str(p2f), 'yes' if f2p > 0 == p2f else 'no'])
    except cage.NoCage as e:
        print(e, file=sys.stderr)
        return 1

    print('\n'.join(grid(['source', 'part', 'issue', 'F2P', 'P2F', 'counts'],
                         rows)))

    return 0


if __name__ == '__main__':
    sys.exit(main())
