# Copyright (C) The nginx-dsa authors

"""What more computation at test time brings; ../README.md describes it."""
