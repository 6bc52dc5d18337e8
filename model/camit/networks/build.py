"""From a configuration to a network: the one place that knows which networks there are."""

from __future__ import annotations

from camit.errors import CheckpointError
from camit.networks.base import Network, NetworkConfig
from camit.networks.rnnsearch import RNNSearch
from camit.networks.transformer import Transformer

ARCHITECTURES: dict[str, type[Transformer] | type[RNNSearch]] = {
    "transformer": Transformer,
    "rnnsearch": RNNSearch,
}


def build(config: NetworkConfig) -> Network:
    """A network with fresh weights."""
    try:
        architecture = ARCHITECTURES[config.arch]
    except KeyError:
        known = ", ".join(ARCHITECTURES)
        raise CheckpointError(
            f"unknown network architecture {config.arch!r}; this version knows {known}."
        ) from None
    return architecture(config)
