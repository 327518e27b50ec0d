"""FedJAX as a contender: its federated averaging, compiled for the CPU."""

import time
from contextlib import suppress

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np

import turns
from workloads import Workload

jax.tree_map = jax.tree_util.tree_map  # FedJAX still calls it by its old name
import fedjax  # noqa: E402


def forward(work: Workload, batch: dict[str, jax.Array]) -> jax.Array:
    """The workload's network; images have their channels last here."""
    x = batch["x"]
    if work.network == "linear":
        return hk.Linear(10)(x)
    padding = "SAME" if work.network == "lenet5-28" else "VALID"
    layers = [
        hk.Conv2D(6, 5, padding=padding),
        jax.nn.relu,
        hk.MaxPool(2, 2, "VALID"),
        hk.Conv2D(16, 5, padding="VALID"),
        jax.nn.relu,
        hk.MaxPool(2, 2, "VALID"),
        hk.Flatten(),
        hk.Linear(120),
        jax.nn.relu,
        hk.Linear(84),
        jax.nn.relu,
        hk.Linear(10),
    ]
    return hk.Sequential(layers)(x)


def main() -> None:
    given = turns.arguments(__doc__).parse_args()
    work, turn = turns.workload(given), turns.Turns()

    def convert(values: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(values.transpose(0, 2, 3, 1)) if values.ndim == 4 else values

    started = time.perf_counter()
    data = work.holder(convert)
    seconds = time.perf_counter() - started

    def dataset(client: int) -> fedjax.ClientDataset:
        x, y = data(client)
        return fedjax.ClientDataset({"x": x, "y": y})

    network = hk.without_apply_rng(hk.transform(lambda batch: forward(work, batch)))

    def loss(params: hk.Params, batch: dict[str, jax.Array], _: jax.Array) -> jax.Array:
        chosen = jax.nn.log_softmax(network.apply(params, batch))
        return -jnp.mean(jnp.take_along_axis(chosen, batch["y"][:, None], axis=1))

    method = fedjax.algorithms.fed_avg.federated_averaging(
        jax.grad(loss),
        fedjax.optimizers.sgd(work.lr),
        fedjax.optimizers.sgd(1.0),
        fedjax.ShuffleRepeatBatchHParams(batch_size=work.batch_size, num_epochs=work.epochs),
    )
    turn.ready(["fedjax", "jax", "numpy"], seconds)
    x, y = work.client(0)
    state = method.init(network.init(jax.random.PRNGKey(0), {"x": convert(x), "y": y}))
    rng = np.random.default_rng(0)
    for number in range(turns.FOREVER):
        cohort = rng.choice(work.clients, work.cohort, replace=False).tolist()
        keys = jax.random.split(jax.random.PRNGKey(number), work.cohort)
        state, _ = method.apply(
            state,
            [(client, dataset(client), key) for client, key in zip(cohort, keys, strict=True)],
        )
        jax.block_until_ready(state.params)
        turn()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
