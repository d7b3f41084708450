# Copyright (C) The nginx-dsa authors

"""Services that look something up, by topic."""

from tasks import (uses_goods, uses_measure, uses_media, uses_places,
                   uses_weather, uses_web)


LOOK = (uses_weather.LOOK + uses_web.LOOK + uses_places.LOOK
        + uses_goods.LOOK + uses_media.LOOK + uses_measure.LOOK)
