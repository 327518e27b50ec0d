"""What each key of an experiment's file means, by the argument that it is."""

from collections.abc import Callable
from typing import Any

MEANINGS = {
    "title": "what the results are called; by default the method and the data set",
    # SGD
    "lr": "the learning rate eta",
    "epochs": "passes over the participant's data in a round; exactly one of epochs and steps",
    "steps": "SGD steps in a round; exactly one of epochs and steps",
    "batch_size": "samples in a mini-batch; without it, all of them",
    "decay": "the rate is multiplied by this in every round",
    "min_lr": "the decayed rate stays at least this",
    "weight_decay": "added to each step's gradient, times the model",
    # methods
    "client": "how clients descend",
    "server": "how the server descends",
    "pretrain": "the server's training before the first round",
    "global_lr": "eta_g, the step on the clients' mean",
    "gradient": "gradients that are reported: of all data, or of one mini-batch",
    "weights": "clients count alike, or by their samples",
    "count": "what K counts in eq. 11",
    "momentum": "how much of the last step is kept",
    "beta1": "Adam's first decay",
    "beta2": "Adam's second decay",
    "tau": "Adam's smallest denominator",
    "option": "SCAFFOLD's option for the new control variates",
    "weight": "gamma, how much the server's loss counts",
    "derive_rate": "the server's rate follows from the clients' (eq. 11)",
    "q": "probability of a client round",
    "blocks": "how many even blocks, or each block's layers",
    "shared": "layers that every client sends",
    "FedDyn.alpha": "strength of the pull to the received model",
    "FedDC.alpha": "strength of the pull to the received model",
    # who holds what, who comes
    "federate.clients": "N, the population",
    "partition": "who holds which samples",
    "federate.server": "the server's samples; without this table it has none",
    "Dirichlet.alpha": "smaller is more skewed",
    "DirichletByClass.alpha": "smaller is more skewed",
    "samples": "how many; without it, as many as fit",
    "labels": "labels a client",
    "at_least": "no client has fewer samples",
    "Sample.samples": "how many; either samples or fraction",
    "Sample.fraction": "instead, a share of all clients' samples",
    "fraction": "a share of all: of the clients' samples, or of a vector's numbers",
    "fresh": "drawn anew in every round",
    "disjoint": "from what no client holds, rather than from the clients' samples",
    "cosine": "of the server's label counts with the clients'",
    "FromClients.clients": "how many clients contribute, or their ids",
    "FromClients.samples": "how many samples of each of them",
    "per_label": "instead, so many of each label",
    "dataset": "another data set",
    "clients": "M, the clients of a round",
    "Bernoulli.clients": "at most so many; without it, all who are there",
    "Markov.clients": "at most so many; without it, all who are there",
    "absent": "how many clients never come, or their ids",
    "schedule": "lists of clients' ids, one list a round, from the start again after the last",
    "probability": "that a client is there; one number, or each client's own",
    "arrive": "probability that a client who is away comes back",
    "leave": "probability that a client who is there goes",
    # data and network
    "DataSource.name": "a data set (see: bellwether data list), or the path of your own",
    "root": "folder to look in first",
    "DataSource.classes": "keep the first so many classes",
    "one_against_rest": "two classes: this label against all others",
    "validation": "share of the training samples to measure on, instead of the test samples",
    "classes": "outputs; by default the data's classes",
    "inputs": "numbers in a sample; by default the data's",
    "channels": "of a sample; by default the data's",
    "size": "height and width of a sample; by default the data's",
    "hidden": "sizes of the hidden layers",
    "bias": "whether layers have biases",
    "width": "channels of the first layers",
    # training
    "rounds": "rounds of training",
    "seed": "the seed of all draws: clients, cohorts, mini-batches, initial weights",
    "compress_up": "how vectors travel to the server; without it, as they are",
    "compress_down": "how vectors travel to the clients; without it, as they are",
    "statistics": "of batch-norm: the clients' mean, the server's, or local to each client",
    "eval_every": "measure each so many rounds, and after the last; 0 for never",
    "checkpoint_every": "rounds between checkpoints",
    "memory_budget": "bytes of RAM for what clients keep between rounds; the rest is on disk",
    "device": "where to compute: auto, cpu, cuda",
    "stop_on_divergence": "stop where a number is not finite, or go on with it",
    "target": "accuracy for 'rounds to the target'",
    "bits": "bits a number",
    "bucket": "numbers that share a scale",
    "feedback": "what was left out is remembered and sent later",
    "loss": "the objective",
    "Objective.kind": "auto: cross-entropy for labels, squared error for values",
    "l2": "adds l2/2 |x|^2 to the objective",
    # where clients run
    "workers": "processes that run clients: a number, or auto; the results are the same",
    "batch_clients": "clients computed side by side: a number, or auto; last bits may differ",
    # a study
    "AccuracyAfter.rounds": "T, the round to look at",
    "window": "rounds over which the curve is rolled; 1: the curve as it is",
    "share": "of the final accuracy",
    "RoundsToTarget.target": "accuracy, or the loss where there is none",
    "BytesToTarget.target": "accuracy, or the loss where there is none",
    # tables of a file
    "data": "which samples",
    "federation": "who holds what",
    "participation": "who comes; by default 10 clients a round, uniformly, or all if fewer",
    "model": "which network; by default one that fits the data",
    "algorithm": "which method",
    "training": "how long, from which seed, what is written down",
    "engine": "where clients run",
}
"""By argument, or by owner and argument where it means something else there."""


def meaning(owner: Callable[..., Any], name: str) -> str:
    """The line for an argument of a class or function."""
    owners = [each.__name__ for each in getattr(owner, "__mro__", (owner,))]
    special = (MEANINGS.get(f"{each}.{name}") for each in owners)
    return next(filter(None, special), MEANINGS.get(name, ""))
