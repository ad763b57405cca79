"""The web page to play, watch and draw boards, and its server."""
