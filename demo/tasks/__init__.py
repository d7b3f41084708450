# Copyright (C) The nginx-dsa authors

"""Synthetic tasks with their checks; README.md describes them."""
