# Copyright (C) The nginx-dsa authors

"""The family of Table 6 of the paper; see coldstart.py."""

from tasks.coldstart import reasoning as make        # noqa: F401
