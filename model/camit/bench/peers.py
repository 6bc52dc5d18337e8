"""The same translation by other engines: CTranslate2 with the same weights, transformers with the same shape.

Weights reach CTranslate2 through its Python specification, in fp32, so it writes the same sentence as our
forward decoder.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import torch

from camit.errors import InputError
from camit.networks.transformer import Transformer, positions
from camit.search.scoring import limit_for
from camit.text import BOS, EOS, PAD
from camit.translator import Translator

POSITIONS = 1024


class Peer(Protocol):
    """Another engine: source pieces in, target pieces out."""

    name: str

    def __call__(self, source: Sequence[int], beam: int, length: int) -> list[int]: ...


class CTranslate2:
    """The forward half of a Transformer, run by CTranslate2."""

    def __init__(self, translator: Translator, directory: Path, threads: int) -> None:
        import ctranslate2

        self.name = f"CTranslate2 {ctranslate2.__version__}, same weights, fp32"
        self._source, self._target = translator.source_vocabulary, translator.target_vocabulary
        specification(translator).save(str(directory))
        self._engine = ctranslate2.Translator(
            str(directory), device="cpu", compute_type="float32", inter_threads=1, intra_threads=threads
        )

    def __call__(self, source: Sequence[int], beam: int, length: int) -> list[int]:
        result = self._engine.translate_batch(
            [[self._source.piece(i) for i in source]],
            beam_size=beam,
            max_decoding_length=limit_for(len(source)),
            disable_unk=True,
        )[0]
        known = {self._target.piece(i): i for i in range(len(self._target))}
        return [known[piece] for piece in result.hypotheses[0]]


def specification(translator: Translator, *, backward: bool = False) -> Any:
    """The encoder and one decoder of a Transformer as CTranslate2 wants them."""
    from ctranslate2.specs import TransformerSpec

    network = translator.network
    if not isinstance(network, Transformer):
        raise InputError(f"CTranslate2 runs Transformers; {translator.name!r} is {network.config.arch}.")
    config = network.config
    spec = TransformerSpec.from_config((config.encoder_layers, config.decoder_layers), config.heads)
    table = positions(0, POSITIONS, network.target_embedding.weight).float().numpy()
    encoder, decoder = spec.encoder, spec.decoder
    for side in (encoder, decoder):
        side.scale_embeddings = True
        side.position_encodings.encodings = table
    _weights(encoder.embeddings[0], network.source_embedding)
    _weights(decoder.embeddings, network.target_embedding)
    _weights(decoder.projection, network.target_embedding)
    written: Any = network.backward_decoder if backward else network.forward_decoder
    ours: Any  # what nn.ModuleList gives out has no type of its own
    for layer, ours in zip(encoder.layer, network.encoder, strict=True):
        _layer(layer, ours, ours.norm2)
    for layer, ours in zip(decoder.layer, written.layers, strict=True):
        _layer(layer, ours, ours.norm3)
        _norm(layer.attention.layer_norm, ours.norm2)
        for at, linear in enumerate((ours.cross.q, ours.cross.kv, ours.cross.out)):
            _weights(layer.attention.linear[at], linear)
    _norm(encoder.layer_norm, network.norm)
    _norm(decoder.layer_norm, written.norm)
    for register, vocabulary in (
        (spec.register_source_vocabulary, translator.source_vocabulary),
        (spec.register_target_vocabulary, translator.target_vocabulary),
    ):
        register([vocabulary.piece(i) for i in range(len(vocabulary))])
    first, last = written.first_piece, written.last_piece
    for name, piece in (("bos_token", first), ("eos_token", last), ("decoder_start_token", first)):
        setattr(spec.config, name, translator.target_vocabulary.piece(piece))
    spec.validate()
    spec.optimize()
    return spec


def _layer(layer: Any, ours: Any, last_norm: Any) -> None:
    _norm(layer.self_attention.layer_norm, ours.norm1)
    _weights(layer.self_attention.linear[0], ours.attention.qkv)
    _weights(layer.self_attention.linear[1], ours.attention.out)
    _norm(layer.ffn.layer_norm, last_norm)
    _weights(layer.ffn.linear_0, ours.ff1)
    _weights(layer.ffn.linear_1, ours.ff2)


def _norm(target: Any, norm: Any) -> None:
    target.gamma, target.beta = norm.weight.detach().numpy(), norm.bias.detach().numpy()


def _weights(target: Any, module: Any) -> None:
    target.weight = module.weight.detach().float().numpy()
    if getattr(module, "bias", None) is not None:
        target.bias = module.bias.detach().float().numpy()


class HuggingFace:
    """A Marian model of the same shape with random weights; `generate` is held to the same length."""

    def __init__(self, translator: Translator) -> None:
        import transformers

        self.name = f"transformers {transformers.__version__}, same shape"
        config = translator.network.config
        self._model: Any = transformers.MarianMTModel(
            transformers.MarianConfig(
                vocab_size=config.target_size,
                d_model=config.d,
                encoder_layers=config.encoder_layers,
                decoder_layers=config.decoder_layers,
                encoder_attention_heads=config.heads,
                decoder_attention_heads=config.heads,
                encoder_ffn_dim=config.ff,
                decoder_ffn_dim=config.ff,
                activation_function="relu",
                max_position_embeddings=POSITIONS,
                pad_token_id=PAD,
                eos_token_id=EOS,
                forced_eos_token_id=EOS,
                decoder_start_token_id=BOS,
            )
        )
        self._model.train(False)

    @torch.inference_mode()
    def __call__(self, source: Sequence[int], beam: int, length: int) -> list[int]:
        result = self._model.generate(
            torch.tensor([list(source)]),
            attention_mask=torch.ones(1, len(source), dtype=torch.long),
            num_beams=beam,
            min_new_tokens=length,
            max_new_tokens=length,
            do_sample=False,
        )
        return [int(i) for i in result[0]]
