"""From a configuration to a network: the one place that knows which networks there are."""

from __future__ import annotations

import msgspec

from camit.errors import CheckpointError
from camit.networks.base import Network, NetworkConfig
from camit.networks.rnnsearch import RNNSearch
from camit.networks.transformer import Transformer

ARCHITECTURES: dict[str, type[Transformer] | type[RNNSearch]] = {
    "transformer": Transformer,
    "rnnsearch": RNNSearch,
}
LARGEST = 2**20


def build(config: NetworkConfig) -> Network:
    """A network with fresh weights."""
    try:
        architecture = ARCHITECTURES[config.arch]
    except KeyError:
        known = ", ".join(ARCHITECTURES)
        raise CheckpointError(
            f"unknown network architecture {config.arch!r}; this version knows {known}."
        ) from None
    for name, size in msgspec.structs.asdict(config).items():
        if isinstance(size, int) and not 1 <= size <= LARGEST:
            raise CheckpointError(f"a network with {name} = {size} cannot be; allowed are 1 to {LARGEST:,}.")
    if config.d % (2 * config.heads):
        raise CheckpointError(f"d = {config.d} cannot be split into {config.heads} heads of even size.")
    return architecture(config)
