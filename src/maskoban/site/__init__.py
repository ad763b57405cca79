"""The static site: the studio's page with the model and the solver inside the browser."""
