"""The web page on which boards are watched, played and drawn, and the server behind it."""
