import copy
import dataclasses
import threading
import time

import numpy as np
import pytest

from ui.services import Services
from ui.tryon import ahead
from ui.tryon.ahead import STAGES_AHEAD, ReadingRequest, Readings
from ui.tryon.work import example_pairs
from vton.options import Options
from vton.result import TryOnResult

A = ReadingRequest("a.png", "t.png", (256, 192), None)


class Networks:
    """Stands for the networks: notes every stage that is read, and waits at one of them if told so."""

    def __init__(self):
        self.read, self.at, self.on = [], None, threading.Event()

    def _stage(self, record, stage, of):
        self.read.append((stage, of))
        if stage == self.at:
            assert self.on.wait(10)
        return dataclasses.replace(record, seconds={**record.seconds, stage: 0.0})

    def run(self, person, garment, options, until):
        assert until == "pose"
        record = TryOnResult(options, photo=person, garment_photo=garment)
        return self._stage(self._stage(record, "photo", person), "pose", person)

    def resume(self, record, stage, until, **edited):
        return self._stage(dataclasses.replace(record, **edited), stage, record.photo)

    def change_garment(self, record, garment, until):
        return self._stage(dataclasses.replace(record, garment_photo=garment), "garment", record.photo)


@pytest.fixture
def services():
    out, networks = Services(device="cpu"), Networks()
    out.tryon = lambda key=None: networks
    out.networks = networks
    return out


def test_photographs_are_read_once_and_a_person_s_stages_stay_with_another_garment(services):
    readings, networks = Readings(), services.networks
    for _ in range(3):
        readings.begin(services, A)
    record = readings.of(A, "garment", 5)
    assert list(record.seconds) == list(STAGES_AHEAD) and record.garment_photo == "t.png"
    readings.begin(services, A)
    other = A._replace(garment="u.png")
    readings.begin(services, other)
    assert readings.of(A, "garment", 5) is None  # what the boxes no longer hold
    assert readings.of(other, "garment", 5).garment_photo == "u.png"
    assert networks.read == [(stage, "a.png") for stage in (*STAGES_AHEAD, "garment")]


@pytest.mark.parametrize("changed", [{"person": "b.png"}, {"size": (512, 384)}, {"key": "run:x@1"}])
def test_another_person_size_or_network_drops_the_reading(services, changed):
    readings, networks = Readings(), services.networks
    readings.begin(services, A)
    readings.of(A, "garment", 5)
    other = A._replace(**changed)
    readings.begin(services, other)
    record = readings.of(other, "garment", 5)
    assert record.photo == other.person and record.options.size == other.size
    assert [stage for stage, _ in networks.read] == [*STAGES_AHEAD, *STAGES_AHEAD]


def test_a_garment_that_changes_while_the_person_is_parsed_is_the_one_that_is_read(services):
    readings, networks = Readings(), services.networks
    networks.at = "parse"
    readings.begin(services, A)
    assert readings.of(A, "pose", 5).photo == "a.png"
    other = A._replace(garment="u.png")
    readings.begin(services, other)
    networks.on.set()
    assert readings.of(other, "garment", 5).garment_photo == "u.png"
    assert [stage for stage, _ in networks.read] == list(STAGES_AHEAD)


def test_nothing_is_read_while_others_compute_unless_somebody_waits(services):
    readings, networks = Readings(), services.networks
    with services.computing:
        readings.begin(services, A)
        time.sleep(5 * ahead.STEP)
        assert networks.read == []
        readings.begin(services, None)  # an empty box
    assert readings.of(A, "garment", 5) is None and networks.read == []
    with services.computing:
        readings.begin(services, A)
        assert readings.of(A, "garment", 5) is not None


def test_what_cannot_be_read_ends_the_waiting_and_others_can_be_read_after_it(services):
    readings, networks = Readings(), services.networks
    networks.resume = lambda *given, **named: (_ for _ in ()).throw(ValueError("no garment"))
    readings.begin(services, A)
    assert readings.of(A, "garment", 5) is None and readings.of(A, "pose", 5) is not None
    del networks.resume
    other = A._replace(person="b.png")
    readings.begin(services, other)
    assert readings.of(other, "garment", 5) is not None


def test_who_waits_is_told_when_it_takes_long(services):
    readings = Readings()
    services.networks.at = "photo"
    readings.begin(services, A)
    with pytest.raises(TimeoutError):
        readings.of(A, "garment", 0.05)
    services.networks.on.set()
    assert readings.of(A, "garment", 5) is not None


def test_every_visitor_has_readings_of_their_own(services):
    readings = Readings()
    readings.begin(services, A)
    readings.of(A, "garment", 5)
    assert copy.deepcopy(readings).of(A, "garment", 5) is None


def test_a_run_on_from_a_reading_is_the_run_itself():
    """Bit for bit, though the garment was another one when the person was read, and the options others."""
    services, readings = Services(device="cpu"), Readings()
    (person, garment), (_, before) = example_pairs()[:2]
    options = Options(size=(256, 192), seed=3, fit=False, sleeves="none")
    first = ReadingRequest(person, before, options.size, None)
    for wanted in (first, first._replace(garment=garment)):
        readings.begin(services, wanted)
        reading = readings.of(wanted, "garment", 600)
    tryon = services.tryon()
    on, whole = (
        ahead.continue_run(tryon, reading, options, None, "composite"),
        tryon.run(person, garment, options),
    )
    assert list(on.seconds) == list(whole.seconds)
    for field in dataclasses.fields(TryOnResult):
        one, other = getattr(on, field.name), getattr(whole, field.name)
        if isinstance(other, np.ndarray):
            np.testing.assert_array_equal(one, other, err_msg=field.name)
        elif field.name == "garment_cut":
            np.testing.assert_array_equal(one.mask, other.mask)
            assert one.attributes == other.attributes and one.method == other.method
        elif field.name != "seconds":
            assert one == other, field.name
