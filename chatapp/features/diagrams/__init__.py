"""The page that draws the diagrams of answers, isolated from all others."""
