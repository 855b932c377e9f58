"""What graphs cost: the questions that people who train graph neural networks ask of a run."""
