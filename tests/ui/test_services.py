import threading
import time

import pytest

from ui.services import Lazy, Progress, Services


def test_lazy_makes_its_value_once_for_many_threads():
    made = []

    def make():
        time.sleep(0.02)
        made.append(object())
        return made[0]

    lazy, got = Lazy(make), []
    threads = [threading.Thread(target=lambda: got.append(lazy())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1 and all(value is made[0] for value in got)


def test_lazy_tries_again_after_a_failure():
    answers = iter([ValueError("not yet"), "ready"])

    def make():
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    lazy = Lazy(make)
    with pytest.raises(ValueError, match="not yet"):
        lazy()
    assert lazy() == "ready" and lazy() == "ready"


class Stages:
    """A run of two stages whose second waits for `go`."""

    def __init__(self):
        self.go, self.ended, self.reached = threading.Event(), threading.Event(), []

    def run(self, person, garment, on_stage, **options):
        try:
            for index, name in enumerate(("first", "second")):
                on_stage(name, index, 2)
                self.reached.append(name)
                if name == "first":
                    assert self.go.wait(10)
            return options
        finally:
            self.ended.set()


def services_with(stages):
    services = Services()
    services.tryon = Lazy(lambda: stages)
    return services


def test_stream_reports_stages_in_order_and_ends_with_the_result():
    stages = Stages()
    stages.go.set()
    *reports, result = services_with(stages).stream_tryon("person", "garment", seed=3)
    assert result == {"seed": 3}
    indices = [report.stage for report in reports if isinstance(report, Progress)]
    assert indices == sorted(indices) and {0, 1} <= set(indices)
    assert all(seconds >= 0 for report in reports for seconds in report.seconds.values())


def test_closing_the_stream_stops_the_run_before_its_next_stage():
    stages = Stages()
    stream = services_with(stages).stream_tryon("person", "garment")
    while next(stream).stage != 0:
        pass
    stream.close()
    stages.go.set()
    assert stages.ended.wait(10)
    assert stages.reached == ["first"]


def test_an_error_of_the_run_reaches_the_caller():
    class Broken:
        def run(self, *args, **options):
            raise ValueError("No person was found.")

    with pytest.raises(ValueError, match="No person"):
        list(services_with(Broken()).stream_tryon("person", "garment"))
