"""Boards that the picture tests draw."""

from __future__ import annotations

from maskoban.boards import Level

# Outside cells at all four corners, every tile, and a wall of each look.
HOUSE = Level.parse("""
   ####
####  #
#  *  ###
# $@ .? #
#     ###
#######
""")

SOLVED_IN_TWO = Level.parse("""
######
#@$ .#
######
""")
