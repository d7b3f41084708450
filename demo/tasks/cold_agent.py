# Copyright (C) The nginx-dsa authors

"""The family of Table 7 of the paper; see coldstart.py."""

from tasks.coldstart import agent as make            # noqa: F401
