"""The worker: one thread, requests first and in order, patient work in between, nothing that vanishes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError

import pytest

from camit.errors import Cancelled, SessionError
from camit.session.worker import Steps, Worker

SOON = 20.0  # seconds in which anything here has happened, on the busiest machine


@pytest.fixture
def worker() -> Iterator[Worker]:
    made = Worker()
    yield made
    made.close()


class Gate:
    """Something to run that waits until it is let through, and says when it has begun."""

    def __init__(self) -> None:
        self.begun, self.open = threading.Event(), threading.Event()

    def __call__(self) -> str:
        self.begun.set()
        assert self.open.wait(SOON)
        return "through"


def test_requests_are_answered_in_order_on_one_thread(worker: Worker) -> None:
    threads = []
    done: list[int] = []

    def run(n: int) -> int:
        threads.append(threading.get_ident())
        done.append(n)
        return n

    futures = [worker.submit(lambda n=n: run(n)) for n in range(20)]  # type: ignore[misc]
    assert [future.result(SOON) for future in futures] == list(range(20)) == done
    assert len(set(threads)) == 1 and threads[0] != threading.get_ident()


def test_an_error_is_the_answer_and_the_worker_goes_on(worker: Worker) -> None:
    future = worker.submit(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        future.result(SOON)
    assert worker.call(lambda: "alive") == "alive"


def test_calls_from_the_worker_itself_run_at_once(worker: Worker) -> None:
    assert worker.call(lambda: worker.call(lambda: worker.inside)) is True
    assert worker.inside is False


def test_a_newer_request_drops_a_queued_one_of_the_same_key(worker: Worker) -> None:
    gate = Gate()
    blocked = worker.submit(gate)
    old, other = worker.submit(lambda: "old", key="row 1"), worker.submit(lambda: "other", key="row 2")
    new = worker.submit(lambda: "new", key="row 1")
    gate.open.set()
    assert (blocked.result(SOON), other.result(SOON), new.result(SOON)) == ("through", "other", "new")
    with pytest.raises(Cancelled):
        old.result(SOON)


def test_a_newer_request_stops_a_running_one_at_its_next_step(worker: Worker) -> None:
    begun = threading.Event()

    def long() -> None:
        begun.set()
        for _ in range(100_000):
            worker.check()
            time.sleep(0.001)

    old = worker.submit(long, key="row 1")
    assert begun.wait(SOON)
    assert worker.submit(lambda: "new", key="row 1").result(SOON) == "new"
    with pytest.raises(Cancelled, match="nothing was changed"):
        old.result(SOON)


def test_a_request_cancelled_by_its_caller_is_not_run(worker: Worker) -> None:
    gate, ran = Gate(), []
    worker.submit(gate)
    future = worker.submit(lambda: ran.append(1))
    assert future.cancel()
    gate.open.set()
    assert worker.call(lambda: "alive") == "alive"
    assert ran == []
    with pytest.raises(CancelledError):
        future.result(SOON)


def patient(log: list[str], name: str, steps: int) -> Steps[str]:
    for n in range(steps):
        log.append(f"{name}{n}")
        yield
    return name


def test_patient_work_gives_its_result(worker: Worker) -> None:
    log: list[str] = []
    first, second = worker.patiently(patient(log, "a", 3)), worker.patiently(patient(log, "b", 2))
    assert (first.result(SOON), second.result(SOON)) == ("a", "b")
    assert log == ["a0", "a1", "a2", "b0", "b1"]


def test_requests_go_first_between_the_steps_of_patient_work(worker: Worker) -> None:
    log: list[str] = []
    gate, second_step = Gate(), threading.Event()

    def steps() -> Steps[None]:
        gate()
        yield
        log.append("patient")
        second_step.set()
        yield

    study = worker.patiently(steps())
    assert gate.begun.wait(SOON)
    clicks = [worker.submit(lambda n=n: log.append(f"click {n}")) for n in range(5)]  # type: ignore[misc]
    assert not any(click.done() for click in clicks)  # the first step is still at work
    gate.open.set()
    study.result(SOON)
    assert log == [*(f"click {n}" for n in range(5)), "patient"]


def test_an_error_in_patient_work_reaches_its_future_only(worker: Worker) -> None:
    def steps() -> Steps[None]:
        yield
        raise ValueError("broken lesson")

    study = worker.patiently(steps())
    with pytest.raises(ValueError, match="broken lesson"):
        study.result(SOON)
    assert worker.patiently(patient([], "next", 1)).result(SOON) == "next"


def test_settling_finishes_patient_work_at_once(worker: Worker) -> None:
    log: list[str] = []

    def run() -> list[str]:
        worker.patiently(patient(log, "a", 3))
        worker.settle()
        return list(log)

    assert worker.call(run) == ["a0", "a1", "a2"]


def test_closing_finishes_everything_and_then_refuses() -> None:
    worker, log = Worker(), []
    worker.submit(lambda: log.append("request"))
    study = worker.patiently(patient([], "study", 3))
    worker.close()
    assert log == ["request"] and study.result(0) == "study"
    with pytest.raises(SessionError, match="closed"):
        worker.submit(lambda: None)
    with pytest.raises(SessionError, match="closed"):
        worker.patiently(patient([], "late", 1))


def test_an_interrupted_wait_drops_the_request(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, ran = Gate(), []
    worker.submit(gate)

    def interrupted(*_: object) -> None:  # as by the stop button of a notebook
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("concurrent.futures.Future.result", interrupted)
        worker.call(lambda: ran.append(1))
    gate.open.set()
    assert worker.call(lambda: "alive") == "alive"
    assert ran == []
