"""How sure is a figure? Intervals from few measurements, robust lines, and what a step takes where none are alike."""
