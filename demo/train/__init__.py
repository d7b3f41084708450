# Copyright (C) The nginx-dsa authors
