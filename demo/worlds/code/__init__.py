# Copyright (C) The nginx-dsa authors

"""Repositories with an issue, and a code interpreter, both in bubblewrap;
../README.md describes them."""
