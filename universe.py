"""What stock `xdsl-opt` learns from us through the entry point `xdsl.universe`.

Names only: each factory imports its module when xDSL asks for it, so that the tool starts at once.
"""

from xdsl.universe import Universe

STEPWELL_UNIVERSE = Universe()
