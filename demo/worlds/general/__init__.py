# Copyright (C) The nginx-dsa authors

"""Synthesis of general tasks with tools; ../README.md describes it."""
