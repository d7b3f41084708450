# Copyright (C) The nginx-dsa authors

"""Environments with tools, tasks and verifiers; README.md describes them."""
