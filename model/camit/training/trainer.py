"""The trainer: both decoders at once (L_L + L_R), Adam, averaged weights, and a state that resumes exactly.

One loop serves a CPU, a GPU and many processes under `torchrun`: each batch is split between the processes
and the loss is divided by the pieces of the whole batch: the number of processes changes only the speed (and
the lots that `sampled` draws).
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import torch
from torch import Tensor, nn

from camit.checkpoint import Checkpoint, digest_of, load_checkpoint
from camit.corpus import Pair
from camit.errors import TrainingError
from camit.networks import Network
from camit.text import Vocabulary
from camit.training.batches import Batch, BatchSource
from camit.training.denormals import tiny_is_zero
from camit.training.distributed import Processes
from camit.training.loss import BothDirections
from camit.training.precision import products
from camit.training.run import Position, RunFolder
from camit.training.scores import Way, corpus_scores, losses, translate
from camit.training.settings import Settings

AVERAGE_EVERY = 8  # steps between two updates of the averaged weights
LOG_SECONDS = 20.0


@dataclass(frozen=True)
class Tick:
    """What the progress display shows after a step."""

    position: Position
    loss: float  # nats per piece, mean of both decoders
    rate: float
    pieces_per_second: float
    used: float  # of the budget, 0 to 1


@dataclass(frozen=True)
class DevSet:
    """Text to measure a model on: all of it for the loss, some of it for BLEU."""

    name: str
    batches: Sequence[Batch]
    translated: Sequence[Pair]


@dataclass(frozen=True)
class Validation:
    """One dev set: mean negative log-probability per piece, and BLEU of greedy translations."""

    name: str
    forward: float
    backward: float
    forward_bleu: float
    backward_bleu: float


class Trainer:
    """One run, from its settings or its last state to the end of its budget."""

    def __init__(
        self,
        settings: Settings,
        folder: RunFolder,
        network: Network,
        vocabularies: tuple[Vocabulary, Vocabulary],
        data: BatchSource,
        dev: Sequence[DevSet],
        processes: Processes,
        *,
        name: str,
        show: Callable[[Tick], None] = lambda tick: None,
    ) -> None:
        self._settings, self._folder, self._data, self._dev = settings, folder, data, dev
        self._source, self._target = vocabularies
        self._processes, self._name, self._show = processes, name, show
        self._device = processes.device
        self._network = network.to(self._device)
        self._average = copy.deepcopy(self._network).requires_grad_(False).eval()
        self._model = self._average  # what is validated and saved as the model
        self._loss = BothDirections(self._network, settings.smoothing, settings.sampled).to(self._device)
        self._parallel = processes.wrap(self._loss)
        self._optimiser = torch.optim.Adam(
            self._network.parameters(), lr=settings.rate, betas=(0.9, 0.98), eps=1e-9, fused=True
        )
        self._position = Position(data=data.digest, start=digest_of(network.state_dict()))
        self._stopping = False
        self.validations: list[Validation] = []  # the latest, one for each dev set

    @property
    def position(self) -> Position:
        return self._position

    def resume(self) -> None:
        """Take up the run's last state, if it has one."""
        found = self._folder.state()
        if found is None:  # stopped before its first checkpoint
            if self._processes.first:
                self._folder.rewind_log(0)
            return
        tensors, position = found
        try:
            self._take_up(tensors)
        except (KeyError, RuntimeError) as error:
            raise TrainingError(
                f"the state in {self._folder.path} is not one of this network ({error}); put it back from a "
                f"copy, or start a new run from its model: --init {self._folder.path}."
            ) from error
        if position.data != self._data.digest:  # other data or batches: the place in the round means nothing
            position = msgspec.structs.replace(
                position, data=self._data.digest, round=position.round + 1, batch=0
            )
        self._position = position
        if self._processes.first:
            self._folder.rewind_log(position.step)

    @torch.no_grad()
    def _take_up(self, tensors: Mapping[str, Tensor]) -> None:
        averages = dict(self._average.named_parameters())
        for name, parameter in self._network.named_parameters():
            parameter.copy_(tensors[f"model.{name}"])
            averages[name].copy_(tensors[f"average.{name}"])
            self._optimiser.state[parameter] = {
                "step": tensors["adam.step"].clone().to(self._device),
                "exp_avg": tensors[f"adam.m.{name}"].to(self._device),
                "exp_avg_sq": tensors[f"adam.v.{name}"].to(self._device),
            }

    @tiny_is_zero()
    def run(self) -> bool:
        """Train until the budget is used up; False when `stop` was called before."""
        settings, position = self._settings, self._position
        # What is needed at the end is looked for now.
        start = self._start() if settings.keep_start else None
        started = time.perf_counter() - position.seconds
        last_log = last_save = last_validation = time.perf_counter()
        logged = position
        sums = torch.zeros(2, dtype=torch.float64)
        pieces_since = 0
        self._network.train()
        while True:
            used = self._processes.agree(-1.0 if self._stopping else self._used())
            if used < 0.0:
                self.save()
                return False
            if used >= 1.0:
                break
            if position.batch >= self._data.batches_in(position.round):
                position = msgspec.structs.replace(position, round=position.round + 1, batch=0)
            rate = settings.rate_at(position.step, used)
            losses, pieces, norm = self._step(self._data.batch(position.round, position.batch), rate)
            sums += losses
            pieces_since += pieces
            now = time.perf_counter()
            position = self._position = msgspec.structs.replace(
                position,
                step=position.step + 1,
                batch=position.batch + 1,
                pieces=position.pieces + pieces,
                seconds=now - started,
            )
            if position.step % AVERAGE_EVERY == 0:
                self._update_average(position.step)
            speed = pieces_since / max(1e-9, position.seconds - logged.seconds)
            loss = sums / pieces_since
            self._show(Tick(position, float(loss.mean()), rate, speed, used))
            if now - last_log >= LOG_SECONDS or self._every_step():
                self._log_step(position, loss, rate, norm, speed)
                last_log, logged, pieces_since = now, position, 0
                sums.zero_()
            if self._due(now - last_validation, settings.validate_minutes):
                self.validate()
                last_validation = time.perf_counter()
                # Validation is not training time.
                started += last_validation - now
                logged = msgspec.structs.replace(logged, seconds=time.perf_counter() - started)
                pieces_since = 0
                sums.zero_()
            if self._due(now - last_save, settings.checkpoint_minutes):
                self.save()
                last_save = now
        if start is not None:
            self.save()
            self._model = self._with_start(start)
        self.validate()
        self.save()
        return True

    def stop(self) -> None:
        """Ask the run to save and end after the step it is at; safe in a signal handler."""
        self._stopping = True

    def _used(self) -> float:
        p = self._position
        return self._settings.budget_used(p.step, p.seconds / 60, p.pieces)

    def _every_step(self) -> bool:
        """Short runs with a budget of steps log each of them, so that two runs can be compared."""
        return self._settings.steps is not None and self._settings.steps <= 2_000

    def _due(self, seconds: float, minutes: float) -> bool:
        return self._processes.agree(seconds) >= 60.0 * minutes

    def _step(self, batch: Batch, rate: float) -> tuple[Tensor, int, float]:
        """One update; the plain losses of both directions, summed over the pieces of the whole batch."""
        pieces = batch.pieces
        shard = batch.shard(self._processes.rank, self._processes.count).to(self._device)
        for group in self._optimiser.param_groups:
            group["lr"] = rate
        self._optimiser.zero_grad(set_to_none=True)
        # Dropout's random numbers belong to the step, so a resumed run draws the same ones.
        torch.manual_seed(hash((self._settings.seed, self._position.step, self._processes.rank)) % 2**63)
        with products(self._settings.precision, self._device):
            total, forward, backward = self._parallel(shard.source, shard.target)
        if self._processes.rank >= len(
            batch.source
        ):  # fewer sentences than processes: nothing of this is counted
            total, forward, backward = total * 0.0, forward * 0.0, backward * 0.0
        # DDP takes the mean over processes; the loss is a mean over the pieces of all of them.
        (total * (self._processes.count / pieces)).backward()
        norm = nn.utils.clip_grad_norm_(self._network.parameters(), self._settings.clip, foreach=True)
        losses = self._processes.sum(torch.stack((forward, backward)).double().cpu())
        if not bool(torch.isfinite(losses).all()) or not math.isfinite(float(norm)):
            raise TrainingError(
                f"the loss is not finite at step {self._position.step + 1}; the last checkpoint is good. "
                "Resume with a smaller --rate."
            )
        self._optimiser.step()
        return losses, pieces, float(norm)

    @torch.no_grad()
    def _update_average(self, step: int) -> None:
        # Early on the average follows quickly, so that it does not drag random weights along.
        decay = min(self._settings.average, (1 + step) / (10 + step)) ** AVERAGE_EVERY
        parameters = [p.detach() for p in self._network.parameters()]
        torch._foreach_lerp_(list(self._average.parameters()), parameters, 1.0 - decay)

    def _start(self) -> Network:
        """The model the run began with, for --keep-start."""
        init = self._settings.init or ""
        start = load_checkpoint(init).network
        if digest_of(start.state_dict()) != self._position.start:
            raise TrainingError(
                f"--keep-start: {init} is another model than the one this run started from. Put that back, "
                "or leave out --keep-start."
            )
        return start

    @torch.no_grad()
    def _with_start(self, start: Network) -> Network:
        """Between the weights the run began with and those it came to.

        Two ends of one path lie in one valley, and its floor is between them (Izmailov et al. 2018).
        """
        model = copy.deepcopy(self._average)
        known = dict(start.named_parameters())
        for name, parameter in model.named_parameters():
            parameter.lerp_(known[name].to(self._device), self._settings.keep_start)
        return model

    def _log_step(self, position: Position, loss: Tensor, rate: float, norm: float, speed: float) -> None:
        if not self._processes.first:
            return
        self._folder.append_log(
            {
                "kind": "train",
                "step": position.step,
                "round": position.round,
                "batch": position.batch,
                "pieces": position.pieces,
                "minutes": round(position.seconds / 60, 3),
                "forward": float(loss[0]),
                "backward": float(loss[1]),
                "rate": rate,
                "norm": norm,
                "pieces_per_second": round(speed, 1),
            }
        )

    def validate(self) -> None:
        """Loss and BLEU of both directions on the dev sets, with the averaged weights."""
        if self._processes.first:
            self.validations = []
            for dev in self._dev:
                result = self._validate(dev)
                self.validations.append(result)
                self._folder.append_log(
                    {
                        "kind": "validation",
                        "step": self._position.step,
                        "pieces": self._position.pieces,
                        "minutes": round(self._position.seconds / 60, 3),
                        "corpus": result.name,
                        "forward": result.forward,
                        "backward": result.backward,
                        "forward_bleu": result.forward_bleu,
                        "backward_bleu": result.backward_bleu,
                    }
                )
        self._processes.barrier()

    def _validate(self, dev: DevSet) -> Validation:
        network = self._model
        forward, backward, pieces = losses(network, dev.batches)
        vocabularies = (self._source, self._target)
        bleu: dict[Way, float] = {}
        ways: tuple[Way, ...] = ("forward", "backward")
        for way in ways:
            texts = translate(network, vocabularies, [p.source for p in dev.translated], way=way, beam=1)
            bleu[way], _ = corpus_scores(
                texts, dev.translated, language=self._target.language, lowercase=True
            )
        return Validation(dev.name, forward / pieces, backward / pieces, bleu["forward"], bleu["backward"])

    def save(self) -> None:
        """Write the state, then the model: the averaged weights."""
        if not self._processes.first:
            return
        tensors: dict[str, Tensor] = {}
        averages = dict(self._average.named_parameters())
        for name, parameter in self._network.named_parameters():
            tensors[f"model.{name}"] = parameter
            tensors[f"average.{name}"] = averages[name]
            state = self._optimiser.state.get(parameter)
            if state:
                tensors["adam.step"] = state["step"]
                tensors[f"adam.m.{name}"] = state["exp_avg"]
                tensors[f"adam.v.{name}"] = state["exp_avg_sq"]
        if "adam.step" in tensors:
            self._folder.save_state(tensors, self._position)
        self._folder.save_model(Checkpoint(self._name, self._model, self._source, self._target))
