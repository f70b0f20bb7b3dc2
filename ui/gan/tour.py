"""A guided tour of the GAN tab in six short stops; each opens the view that it speaks of."""

from __future__ import annotations

from ui.kit import QUICKLY, Stop, Tour

STOPS = (
    Stop(
        "A counterfeiter and the police",
        "G turns evenly spread numbers z, the lower line, into x, the upper one; where the arrows crowd, its density "
        "(green) is high. D (blue, dashed) says how likely an x is to be data (dotted). It plays now.",
        "line",
        "#gan-line-game .game-stage",
        "#gan-line-play",
    ),
    Stop(
        "The best answer D could give",
        "The game stands still. Press <b>One step of D</b> a few times: the blue curve moves onto the orange one, "
        "D*(x) = p<sub>data</sub> / (p<sub>data</sub> + p<sub>g</sub>). That is Proposition 1, measured here.",
        "line",
        "#gan-line-game .game-stage",
        "#gan-line-pause;#gan-line-d",
    ),
    Stop(
        "Two numbers that must agree",
        "Below, C(G) is worked out from samples by equation 4, and −log 4 + 2 JSD from the two densities by Theorem 1. "
        "They agree at every step; at −log 4 the generator has found the data, and D is ½ everywhere.",
        "line",
        "#gan-line-game .game-below",
        "#gan-line-one",
    ),
    Stop(
        "The Helvetica scenario",
        "<b>Lose the modes</b> is pressed: a strong discriminator against the saturating loss. G maps many z to the "
        "same few x, the grid of z folds up, and most of the eight modes are crossed out (section 6).",
        "plane",
        "#gan-plane-game .game-stage",
        "#gan-plane-collapse",
    ),
    Stop(
        "Why the other loss",
        "Where D is sure, near 0, log(1 − D) leaves G no slope to follow, and −log D nearly all of it (section 3). "
        "It plays now; wait until D wins, then switch the objective.",
        "loss",
        "#gan-loss-losses",
        "#gan-loss-play",
    ),
    Stop(
        "Digits, and how they are judged",
        "The networks of the authors’ code on handwritten digits: fair draws, walks in z, D’s opinion of your own "
        "digit, and at the end the measure of Table 1, by which centroids of k-means beat the data themselves.",
        "digits",
        "#gan-digits-sheet",
        "#gan-digits-draw",
    ),
)


class GanTour(Tour):
    """The tour's button and its card, above the views."""

    prefix = "gan-"
    invitation = "Take the tour: six stops"
    options = QUICKLY

    def stops(self) -> tuple[Stop, ...]:
        """The six stops, the same for every game."""
        return STOPS
