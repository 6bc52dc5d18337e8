"""`camit evaluate`: BLEU, chrF and perplexity of a model, for people and for machines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table


def evaluate(
    model: Annotated[str, typer.Option(help="Embedded model or checkpoint directory.")] = "zh-en",
    corpus: Annotated[list[Path], typer.Option(help="TSV: document, source, reference(s).")] = ...,  # type: ignore[assignment]
    lowercase: Annotated[
        bool | None,
        typer.Option(help="Score without regard to case; left out, as the references of a corpus look."),
    ] = None,
    beam: Annotated[int, typer.Option(help="Width of the search.")] = 4,
    limit: Annotated[int | None, typer.Option(help="Only the first lines of each corpus.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write the figures for machines.")] = None,
) -> None:
    """Score a model, both decoders together and each alone: sacrebleu BLEU, chrF, perplexity per piece."""
    from camit.checkpoint import check_writable, load_checkpoint, write_atomically
    from camit.corpus import looks_lowercased, read_corpus
    from camit.search.revise import check_beam
    from camit.training.denormals import tiny_is_zero
    from camit.training.scores import evaluate_model
    from camit.training.start import dev_batches

    check_beam(beam)
    if json is not None:
        check_writable(json, corpus)
    checkpoint = load_checkpoint(model)
    vocabularies = (checkpoint.source, checkpoint.target)
    table = Table("corpus", "lines", "case", "decoder", "BLEU", "chrF", "perplexity")
    results = []
    for path in corpus:
        pairs = list(read_corpus(path, limit))
        batches = dev_batches(path, pairs, *vocabularies)
        folded = looks_lowercased(pairs) if lowercase is None else lowercase
        with tiny_is_zero():
            found = evaluate_model(
                checkpoint.network, vocabularies, pairs, batches, beam=beam, lowercase=folded
            )
        for way, scores in found.items():
            table.add_row(
                path.name,
                f"{len(pairs):,}",
                "ignored" if folded else "counts",
                way,
                f"{scores.bleu:.2f}",
                f"{scores.chrf:.2f}",
                f"{scores.perplexity:.3f}",
            )
            read = {"corpus": path.name, "lines": len(pairs), "lowercase": folded, "direction": way}
            results.append(read | msgspec.structs.asdict(scores))
    Console(width=100).print(table)
    if json is not None:
        settings = {"model": model, "beam": beam, "limit": limit}
        content = msgspec.json.encode({"settings": settings, "scores": results})
        write_atomically(json, msgspec.json.format(content, indent=1))
