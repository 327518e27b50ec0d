"""Studies: a base experiment, axes, seeds and a question, run in parallel and collected."""
