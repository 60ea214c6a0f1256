"""How much users, groups and the deployment may spend on models in a day or a month."""
