"""What the rules around the model are worth."""

import pytest

from lab.translator.rules import RULES, figures, rule_figures
from transformer.translator import Translator


def test_figures_know_no_case_and_count_numbers():
    found = figures(["At 10 we ate.", "No."], ["UM 10 ASSEN WIR.", "Nein."], ["Um 10 assen wir.", "Nein."])
    assert found == {"pairs": 2, "bleu": pytest.approx(100), "chrf": pytest.approx(100), "numbers": 1.0}
    lost = figures(["At 10 we ate.", "9 dogs"], ["Um 11 assen wir.", "9 Hunde"], ["Um 10 assen wir.", "9 Hunde"])
    assert lost["numbers"] == 0.5 and lost["bleu"] < 100
    assert figures(["No."], ["Nein."], ["Nein."])["numbers"] is None


@pytest.fixture(scope="module")
def everyday():
    return Translator.from_pretrained("everyday")


def test_each_rule_is_left_out_by_itself(everyday):
    pairs = [("The dog has 1437 friends.", "Le chien a 1437 amis."), ("I see the animal.", "Je vois l'animal.")]
    rows = rule_figures(everyday, pairs, "en", "fr")
    found = {(row["typed"], row["without"]): row for row in rows}
    assert {typed for typed, without in found if without == "nothing"} == {"as written", "small", "capitals"}
    assert {without for _, without in found} <= {"nothing", *RULES}
    assert found["capitals", "casing"]["changed"] == 2  # the model cannot read capitals
    assert found["capitals", "casing"]["chrf"] < found["capitals", "nothing"]["chrf"]
    assert ("as written", "casing") not in found  # nothing to do there, so no row
    assert found["as written", "nothing"]["numbers"] == 1.0


def test_without_verbatim_a_number_goes_through_the_model(everyday):
    assert not everyday.mask("It costs 1437 euros.", "en", frozenset({"verbatim"})).stand_ins
    assert everyday.mask("It costs 1437 euros.", "en").stand_ins
