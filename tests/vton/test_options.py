"""The options of a try-on: told once, read by command line, page, record and API."""

import argparse
import dataclasses
import inspect

import pytest

from vton.networks.alias import NORMS
from vton.options import ABOUT, DEFAULTS, Options, add_arguments, from_arguments
from vton.pipeline import STAGES
from vton.rules.sleeves import KINDS


def read(*words: str) -> Options:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return from_arguments(parser.parse_args(words))


def test_every_option_has_words_and_a_stage_that_reads_it():
    assert set(ABOUT) == {field.name for field in dataclasses.fields(Options)}
    for name, about in ABOUT.items():
        assert about.read_by in STAGES and about.label and about.help
        assert not about.choices or DEFAULTS[name] in about.values
        assert bool(about.off) == (DEFAULTS[name] is True)
    assert ABOUT["norm"].values == NORMS and set(ABOUT["sleeves"].values) == {"auto", "predicted", *KINDS}


def test_the_command_line_sets_every_option():
    assert read() == Options()
    words = "--size 256x192 --seed 7 --no-fit --norm instance --no-noise --no-detail --grid 10"
    words += " --sleeves short --neckline predicted --hem predicted --no-mirror --warp flow --no-reveal"
    expected = Options(
        (256, 192), 7, False, "instance", False, False, 10, "short", "predicted", "predicted", False, "flow", False
    )
    assert read(*words.split()) == expected
    assert all(getattr(expected, name) != default for name, default in DEFAULTS.items())


@pytest.mark.parametrize(
    "values, words",
    [
        ({"size": (100, 75)}, "size must be one of 256x192, 512x384, 1024x768, but is 100x75."),
        ({"norm": "batch"}, "norm must be one of alias, instance, but is 'batch'."),
        ({"grid": 7}, "grid must be one of 5, 10, but is 7."),
        ({"hem": "torn"}, "hem must be one of auto, predicted, tucked, but is 'torn'."),
        ({"warp": "affine"}, "warp must be one of auto, spline, flow, but is 'affine'."),
        ({"warp": ["flow"]}, "warp must be one of auto, spline, flow, but is \"['flow']\"."),
        ({"size": []}, "size must be one of 256x192, 512x384, 1024x768, but is ()."),
        ({"size": 512}, "size has to be a height and a width, but is '512'."),
        ({"grid": []}, "grid has to be a whole number, but is '[]'."),
        ({"grid": 5.5}, "grid has to be a whole number, but is '5.5'."),
        ({"seed": float("inf")}, "seed has to be a whole number, but is 'inf'."),
        ({"seed": "soon"}, "seed has to be a whole number, but is 'soon'."),
        ({"noise": []}, "noise has to be true or false, but is '[]'."),
        ({"fit": "no"}, "fit has to be true or false, but is 'no'."),
    ],
)
def test_a_value_that_does_not_exist_is_named(values, words):
    with pytest.raises(ValueError) as error:
        Options.of(values)
    assert str(error.value) == words


def test_loose_values_take_the_type_of_the_default():
    options = Options.of({"size": [512, 384], "seed": 3.0, "fit": 0, "grid": "10", "hem": None})
    assert options == Options(seed=3, fit=False, grid=10) and type(options.seed) is int
    with pytest.raises(TypeError, match="hemline"):
        Options.of({"hemline": "auto"})


def test_the_page_shows_every_option_and_its_api_describes_it():
    from ui.tryon import settings

    def endpoint(person, settings, model):
        """Dress somebody.

        Args:
            person: a photo
            settings: ; for a new run
            model: a key
        """
        yield person, settings, model

    published = settings.spread_settings(endpoint)
    assert list(inspect.signature(published).parameters) == ["person", *ABOUT, "model"]
    for name, about in ABOUT.items():
        component = settings.component(name)
        assert component.label == about.label and component.value == settings.component_value(name, DEFAULTS[name])
        assert f"{name}: {about.help}" in published.__doc__
    assert f"size: {ABOUT['size'].help}; for a new run\n" in published.__doc__
    values = [settings.component_value(name, getattr(Options(seed=5), name)) for name in ABOUT]
    assert next(published("p", *values, "m")) == ("p", dict(zip(ABOUT, values)), "m")
    assert settings.read_options("p", "g", dict(zip(ABOUT, values))) == Options(seed=5)
