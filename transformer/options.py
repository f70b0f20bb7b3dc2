"""How outputs are searched for: one dataclass from the page, the API and the commands down to `search`."""

import math
from dataclasses import dataclass

from training.arguments import expect_fields

MAX_ALPHA = 10  # the paper has 0.6; a thousand tokens to the power of this are still far from the largest float


@dataclass(frozen=True)
class Sampling:
    """Draw translations at random instead of searching for the likeliest; see `search.sample_search`."""

    temperature: float = 1.0  # above 0; below 1 likely words gain, above 1 unlikely ones
    top_k: int = 0  # draw among the k likeliest word pieces only; 0 = among all
    seed: int = 0  # the same seed gives the same translations


@dataclass(frozen=True)
class SearchOptions:
    """What a search is asked for.

    The beam of 4 is the paper's (section 6.1). A `margin` gives up hypotheses that fall further behind ("absolute
    threshold pruning", Freitag and Al-Onaizan 2017, section 3).
    """

    beam: int = 4  # hypotheses kept at each step; 1 is greedy search
    alpha: float | None = None  # length penalty of Wu et al. (2016); None = what suits the model, 0.6 in the paper
    n_best: int = 1  # outputs, best first; of hypotheses that read the same there is one
    max_length: int | None = None  # most tokens of an output; None = the source's plus 50 (section 6.1)
    trace: bool = False  # keep every step of the search
    sampling: Sampling | None = None  # draw n_best outputs, each sentence with a seed of its own, instead of searching
    quick: bool = False  # products of 8 bits, the words of the target language alone, a margin; see `Translator`
    read_back: bool = False  # rank what was found by the way back, too (`scoring.rank_by_reading_back`)
    margin: float = math.inf  # nats by which a hypothesis may be behind the best one of its sentence
    without: frozenset[str] = frozenset()  # rules around the model that are left out, of `RULES`

    def check(self) -> None:
        """Raises `ValueError` with one sentence if beam and n_best do not go together or a number is not one, and
        TypeError for a field of another type.
        """
        expect_fields(SearchOptions, vars(self))
        if self.sampling is not None:
            expect_fields(Sampling, vars(self.sampling))
        if self.alpha is not None and not abs(self.alpha) <= MAX_ALPHA:
            raise ValueError(f"alpha has to be a number from -{MAX_ALPHA} to {MAX_ALPHA}, but is {self.alpha:g}.")
        if not self.margin >= 0:
            raise ValueError(f"margin has to be 0 or more, but is {self.margin}.")
        if self.beam < 1 or self.n_best < 1 or (self.n_best > self.beam and self.sampling is None):
            raise ValueError(
                f"Beam ({self.beam}) and number of translations ({self.n_best}) must be 1 <= number <= beam."
            )

    @property
    def hypotheses(self) -> int:
        """How many hypotheses of a sentence are decoded together."""
        return self.beam if self.sampling is None else self.n_best


DEFAULTS = SearchOptions()
RULES = ("layout", "casing", "spelling", "verbatim", "quantities", "elision")  # around the model, of `transformer.text`
