"""Many clients in one stacked computation: their vectors are the rows of [m, d] tensors."""
