"""Before buying: which context fits which box, at what speed, and what another part would change."""
