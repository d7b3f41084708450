# Copyright (C) The nginx-dsa authors

"""Questions for a search tool over made-up pages; ../README.md describes
them."""
