"""What stands above the tabs says what the page shows, and its links lead somewhere."""

import json
import re

import numpy as np
import pytest

from gan.densities import distribution
from ui import first, page
from ui.services import Services
from ui.translate import opening
from ui.translate.words import plain


@pytest.fixture(scope="module")
def services():
    return Services(device="cpu")


def test_every_picture_leads_to_a_tab_of_the_page(services):
    html = first.heading(services)
    tabs = {
        part["props"]["id"]
        for part in page.build(services).get_config_file()["components"]
        if part["type"] == "tabitem" and part["props"].get("id")
    }
    links = re.findall(r'href="#tab=([\w-]+)"', html)
    assert links == ["translate", "try-on", "gan"] and set(links) <= tabs
    assert html.count("<h1") == 1
    assert all(alt.strip() for alt in re.findall(r'aria-label="([^"]*)"', html))


def test_the_map_names_its_own_strongest_pair(services):
    attention = opening.load(services).attention
    told = re.search(r"“(.+)” gives ([\d.]+) to “(.+)”", first.map_picture(services).alt)
    rows = [plain(token) for token in attention.target_tokens]
    columns = [plain(token) for token in attention.source_tokens]
    weights = np.mean(attention.cross[-1], axis=0)
    assert weights[rows.index(told[1]), columns.index(told[3])] == pytest.approx(float(told[2]), abs=0.005)
    inner = weights[:-1, 1:-1]  # without start and end, where heads rest
    assert float(told[2]) == pytest.approx(inner.max(), abs=0.005)


def test_another_translator_has_no_picture_of_this_sentence():
    other = Services(device="cpu", translation_model="multi30k-en-de")
    assert first.map_picture(other) is None and "first-translate" not in first.heading(other)


def test_the_density_is_that_of_the_data_and_the_generator_has_come_near():
    told = {name: np.array(value) for name, value in json.loads(first.FILE.read_text()).items() if name != "iterations"}
    step = 8 / 240 * 3  # every third of 240 places on [-4, 4]
    assert told["data"].sum() * step == pytest.approx(1, abs=0.03)
    assert told["generated"].sum() * step == pytest.approx(1, abs=0.05)
    assert told["data"].max() == pytest.approx(1 / (np.sqrt(2 * np.pi) * distribution("line").std), rel=0.05)
    assert np.abs(told["data"] - told["generated"]).sum() * step < 0.35  # both densities are 1 in all; apart it is 2
