"""Both networks keep the contract of `camit.networks.base`; packed weights change nothing but the time."""

from __future__ import annotations

import copy
import json

import pytest
import torch
from torch import Tensor, nn

from camit.checkpoint import EMBEDDED, load_checkpoint
from camit.errors import CheckpointError
from camit.networks import Decoder, Network, NetworkConfig, build
from camit.networks.layers import FEW, Linear
from tests.helpers import tiny_network

SOURCE = torch.tensor([[5, 9, 7, 12, 4]])
TARGET = [6, 11, 8, 19, 4, 15]


@pytest.fixture(params=["transformer", "rnnsearch"])
def network(request: pytest.FixtureRequest) -> Network:
    return tiny_network(request.param)


@pytest.fixture(params=["forward", "backward"])
def decoder(request: pytest.FixtureRequest, network: Network) -> Decoder:
    return network.forward_decoder if request.param == "forward" else network.backward_decoder


def logp(decoder: Decoder, s: Tensor) -> Tensor:
    return torch.log_softmax(decoder.logits(s), dim=-1)


def follow(network: Network, decoder: Decoder, source: Tensor, tokens: Tensor) -> Tensor:
    """Log-probabilities after each token, teacher-forced in one pass."""
    with torch.inference_mode():
        return logp(decoder, decoder.advance(decoder.start(network.encode(source)), tokens)[1].s)


def test_step_by_step_equals_the_teacher_forced_pass(network: Network, decoder: Decoder) -> None:
    tokens = torch.tensor([[decoder.first_piece, *TARGET]])
    with torch.inference_mode():
        start = decoder.start(network.encode(SOURCE))
        _, whole = decoder.advance(start, tokens)
        state = start
        for at in range(tokens.shape[1]):
            state, step = decoder.advance(state, tokens[:, at : at + 1])
            for one, all_ in zip(step, whole, strict=True):
                torch.testing.assert_close(one[:, 0], all_[:, at], atol=1e-4, rtol=0)
            torch.testing.assert_close(
                logp(decoder, step.s)[:, 0], logp(decoder, whole.s)[:, at], atol=1e-4, rtol=0
            )


def test_what_learning_moves_comes_behind_the_places(network: Network, decoder: Decoder) -> None:
    tokens = torch.tensor([[decoder.first_piece, *TARGET]])
    with torch.inference_mode():
        encoded = network.encode(SOURCE)
        _, before = decoder.advance(decoder.start(encoded), tokens)
    torch.testing.assert_close(decoder.finish(before.place.clone()), before.s, atol=1e-4, rtol=0)
    with torch.no_grad():
        for p in decoder.adaptable:
            p.add_(0.1)
    with torch.inference_mode():
        _, after = decoder.advance(decoder.start(encoded), tokens)
        same = decoder.compared(after.place), decoder.compared(before.place)
    torch.testing.assert_close(after.place, before.place, atol=0, rtol=0)
    torch.testing.assert_close(after.c, before.c, atol=0, rtol=0)
    torch.testing.assert_close(*same, atol=0, rtol=0)
    assert not torch.allclose(after.s, before.s, atol=1e-2)


def test_a_prefix_may_be_cut_anywhere(network: Network, decoder: Decoder) -> None:
    tokens = torch.tensor([[decoder.first_piece, *TARGET]])
    with torch.inference_mode():
        start = decoder.start(network.encode(SOURCE))
        whole = decoder.advance(start, tokens)[1].s
        for cut in range(1, tokens.shape[1]):
            state, first = decoder.advance(start, tokens[:, :cut])
            _, second = decoder.advance(state, tokens[:, cut:])
            torch.testing.assert_close(torch.cat((first.s, second.s), 1), whole, atol=1e-4, rtol=0)


def test_reading_for_training_gives_the_states_of_decoding(network: Network, decoder: Decoder) -> None:
    tokens = torch.tensor([[decoder.first_piece, *TARGET], [decoder.first_piece, *reversed(TARGET)]])
    source = torch.tensor([[5, 9, 7, 12, 4], [8, 8, 3, 0, 0]])
    encoded = network.encode(source)
    advanced = decoder.advance(decoder.start(encoded), tokens)[1].s
    torch.testing.assert_close(decoder.read(encoded, tokens), advanced, atol=1e-4, rtol=0)
    weight, bias = decoder.output_layer
    torch.testing.assert_close(nn.functional.linear(advanced, weight, bias), decoder.logits(advanced))


def test_neighbours_and_padding_change_nothing(network: Network, decoder: Decoder) -> None:
    alone = follow(network, decoder, SOURCE, torch.tensor([[decoder.first_piece, *TARGET]]))
    sources = torch.tensor([[7, 7, 7, 7, 7, 7, 7, 7], [5, 9, 7, 12, 4, 0, 0, 0], [3, 0, 0, 0, 0, 0, 0, 0]])
    tokens = torch.tensor(
        [
            [decoder.first_piece, *[5] * 9],
            [decoder.first_piece, *TARGET, 0, 0, 0],
            [decoder.first_piece, *[0] * 9],
        ]
    )
    company = follow(network, decoder, sources, tokens)[1:2, : len(TARGET) + 1]
    torch.testing.assert_close(company, alone, atol=1e-4, rtol=0)


def test_attention_is_a_distribution_over_real_source_pieces(network: Network, decoder: Decoder) -> None:
    sources = torch.tensor([[5, 9, 7, 12], [5, 9, 0, 0]])
    with torch.inference_mode():
        state = decoder.start(network.encode(sources))
        attention = decoder.advance(state, torch.tensor([[decoder.first_piece]] * 2))[1].attention
    torch.testing.assert_close(attention.sum(2), torch.ones(2, 1))
    assert attention[1, 0, 2:].tolist() == [0.0, 0.0]


def test_rows_may_be_reordered_repeated_and_dropped(network: Network, decoder: Decoder) -> None:
    sources = torch.tensor([[5, 9, 7, 12, 4], [8, 6, 3, 0, 0], [4, 4, 9, 9, 0]])
    tokens = torch.tensor(
        [[decoder.first_piece, 6, 11], [decoder.first_piece, 8, 19], [decoder.first_piece, 4, 15]]
    )
    following = torch.tensor([[7], [9], [10], [11]])
    for rows in ([2, 0, 0, 1], [1, 1, 1, 1], [0, 0, 1, 1], [0, 1, 2, 2]):
        with torch.inference_mode():
            state, _ = decoder.advance(decoder.start(network.encode(sources)), tokens)
            picked = decoder.advance(state.select(torch.tensor(rows)), following)[1].s[:, 0]
        for at, row in enumerate(rows):
            whole = torch.cat((tokens[row], following[at])).unsqueeze(0)
            with torch.inference_mode():
                encoded = network.encode(sources[row : row + 1])
                expected = decoder.advance(decoder.start(encoded), whole)[1].s[:, -1]
            torch.testing.assert_close(picked[at : at + 1], expected, atol=1e-4, rtol=0)


def test_rows_of_different_length_are_read_in_one_pass(network: Network, decoder: Decoder) -> None:
    prefixes = [[decoder.first_piece, *TARGET], [decoder.first_piece], [decoder.first_piece, 9, 8]]
    lengths = torch.tensor([len(prefix) for prefix in prefixes])
    padded = torch.tensor([[*prefix, *[0] * (7 - len(prefix))] for prefix in prefixes])
    following = torch.tensor([[5, 6], [7, 8], [9, 10]])
    with torch.inference_mode():
        start = decoder.start(network.encode(SOURCE)).select(torch.zeros(3, dtype=torch.long))
        state, read = decoder.advance(start, padded)
        state = state.behind(lengths.tolist())
        together, steps = state.select(torch.tensor([2, 0, 1])), []
        for at in range(2):
            together, step = decoder.advance(together, following[[2, 0, 1], at : at + 1])
            steps.append(step)
        for place, row in enumerate([2, 0, 1]):
            state, alone = decoder.advance(start.select(torch.tensor([0])), torch.tensor([prefixes[row]]))
            torch.testing.assert_close(read.s[row, : lengths[row]], alone.s[0], atol=1e-4, rtol=0)
            _, alone = decoder.advance(state, following[row : row + 1])
            for at, step in enumerate(steps):
                for together_, alone_ in zip(step, alone, strict=True):
                    torch.testing.assert_close(together_[place, 0], alone_[0, at], atol=1e-4, rtol=0)
        # and several known pieces behind rows of different length
        _, whole = decoder.advance(decoder.advance(start, padded)[0].behind(lengths.tolist()), following)
        for row in range(3):
            tokens = torch.tensor([[*prefixes[row], *following[row].tolist()]])
            alone = decoder.advance(start.select(torch.tensor([0])), tokens)[1]
            torch.testing.assert_close(whole.s[row], alone.s[0, -2:], atol=1e-4, rtol=0)


def test_advancing_leaves_the_old_state_as_it_was(network: Network, decoder: Decoder) -> None:
    with torch.inference_mode():
        state, _ = decoder.advance(
            decoder.start(network.encode(SOURCE)), torch.tensor([[decoder.first_piece]])
        )
        first = decoder.advance(state, torch.tensor([[6]]))[1].s
        decoder.advance(decoder.advance(state, torch.tensor([[9]]))[0], torch.tensor([[7, 8, 9]]))
        again = decoder.advance(state, torch.tensor([[6]]))[1].s
    assert torch.equal(first, again)


def test_the_decoders_read_from_opposite_ends(network: Network) -> None:
    assert (network.forward_decoder.first_piece, network.forward_decoder.last_piece) == (2, 3)
    assert (network.backward_decoder.first_piece, network.backward_decoder.last_piece) == (3, 2)


def test_unknown_architecture_is_named() -> None:
    with pytest.raises(CheckpointError, match=r"'perceptron'.*transformer, rnnsearch"):
        build(NetworkConfig(arch="perceptron", source_size=9, target_size=9, d=8))


def test_the_embedded_model_gives_its_reference_log_probabilities() -> None:
    directory = EMBEDDED / "zh-en"
    checkpoint = load_checkpoint(directory)
    network = checkpoint.network
    reference = json.loads((directory / "reference.json").read_text("utf-8"))
    assert reference
    for pair in reference:
        assert checkpoint.source.encode(pair["source"]) == pair["source_ids"]
        assert checkpoint.target.encode(pair["target"]) == pair["target_ids"]
        source = torch.tensor([pair["source_ids"]])
        for decoder, name, ids in (
            (network.forward_decoder, "forward", pair["target_ids"]),
            (network.backward_decoder, "backward", pair["target_ids"][::-1]),
        ):
            scores = follow(network, decoder, source, torch.tensor([[decoder.first_piece, *ids]]))[0]
            found = scores.gather(1, torch.tensor([*ids, decoder.last_piece]).unsqueeze(1)).squeeze(1)
            torch.testing.assert_close(found, torch.tensor(pair[name]), atol=1e-3, rtol=0)


class TestPackedWeights:
    """`Linear` in inference mode against the plain product."""

    @pytest.mark.parametrize("rows", [1, 4, FEW, FEW + 1])
    @pytest.mark.parametrize("stored_in_half", [True, False])
    def test_products_are_the_same(self, rows: int, stored_in_half: bool) -> None:
        torch.manual_seed(rows)
        layer = Linear(48, 80)
        if stored_in_half:
            layer.load_state_dict({name: w.half().float() for name, w in layer.state_dict().items()})
        x = torch.randn(rows, 1, 48)
        plain = layer(x)
        with torch.inference_mode():
            torch.testing.assert_close(layer(x), plain, atol=1e-5, rtol=1e-5)

    def test_every_way_of_changing_weights_is_noticed(self) -> None:
        layer = Linear(8, 8)
        x = torch.randn(2, 8)
        original = layer.weight.data

        def is_fresh() -> bool:
            plain = nn.functional.linear(x, layer.weight, layer.bias)
            with torch.inference_mode():
                return bool(torch.allclose(layer(x), plain, atol=1e-5))

        assert is_fresh()
        layer(x).sum().backward()
        torch.optim.SGD(layer.parameters(), lr=0.5).step()
        assert is_fresh()
        layer.weight.data = original + 1.0
        assert is_fresh()
        layer.weight.data = original
        assert is_fresh()
        layer.load_state_dict({name: w * 2 for name, w in layer.state_dict().items()})
        assert is_fresh()
        with torch.no_grad():
            layer.bias.add_(1.0)
        assert is_fresh()

    def test_a_copied_network_has_weights_of_its_own(self, network: Network) -> None:
        decoder = network.forward_decoder
        tokens = torch.tensor([[decoder.first_piece, *TARGET]])
        before = follow(network, decoder, SOURCE, tokens)
        other = copy.deepcopy(network)
        with torch.no_grad():
            for parameter in other.parameters():
                parameter.add_(0.1)
        assert not torch.allclose(follow(other, other.forward_decoder, SOURCE, tokens), before, atol=1e-2)
        assert torch.equal(follow(network, decoder, SOURCE, tokens), before)

    def test_gradients_flow_through_decoding(self, network: Network, decoder: Decoder) -> None:
        follow(network, decoder, SOURCE, torch.tensor([[decoder.first_piece]]))
        _, features = decoder.advance(
            decoder.start(network.encode(SOURCE)), torch.tensor([[decoder.first_piece, 6]])
        )
        decoder.logits(features.s).sum().backward()
        assert all(p.grad is not None for p in decoder.parameters())
