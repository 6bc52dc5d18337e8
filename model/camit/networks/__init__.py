"""The networks behind one contract: a shared encoder, a forward and a backward decoder."""

from camit.networks.base import Decoder, Encoded, Features, Network, NetworkConfig, State
from camit.networks.build import build

__all__ = ["Decoder", "Encoded", "Features", "Network", "NetworkConfig", "State", "build"]
