# Copyright (C) The nginx-dsa authors

"""Tasks without tools: programming, logic and writing; ../README.md describes
them."""
