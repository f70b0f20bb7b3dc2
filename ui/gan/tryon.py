"""From the paper to try-on: the discriminators of VITON-HD on a result, their patches as a heat map."""

import gradio as gr

from ui import messages, theme
from ui.kit import QUICKLY, View, alerts, on_queue
from ui.services import last
from vton import patches, record

SIZE = (256, 192)
NO_DISCRIMINATOR = (
    "No run on this machine has a discriminator: only generators are shipped. Train an ALIAS generator in the Train "
    "tab; its checkpoints contain one."
)


class TryOnView(View):
    """A discriminator's patches on a result of the try-on."""

    name = "tryon"
    title = "From here to try-on"

    def build(self) -> None:
        """Makes the components."""
        gr.Markdown(theme.text("gan/tryon"), elem_classes="section")
        with gr.Row(elem_classes="game-settings"):
            self.run = theme.component(gr.Dropdown, "gan-tryon-run")
            self.record_file = theme.component(gr.File, "gan-tryon-saved")
            self.judge = theme.component(gr.Button, "gan-tryon-judge")
        self.note = gr.HTML(elem_id="gan-tryon-note")
        self.pictures = theme.gallery("The result, and where D doubts it", "gan-tryon-pictures")

    def wire(self) -> None:
        """Connects the events."""
        self.draw_with([self.run], [self.run, self.note], **QUICKLY)
        self.judge.click(
            self.ask,
            [self.run, self.record_file],
            [self.pictures, self.note],
            api_name="gan_tryon_judge",
            **on_queue("try-on"),
        )

    def show(self, run):
        """The runs that have a discriminator."""
        names = patches.runs_with_critics(self.services.runs)
        name = run if run in names else next(iter(names), None)
        return {
            self.run: gr.update(choices=names, value=name),
            self.note: "" if names else messages.status(NO_DISCRIMINATOR),
        }

    @alerts("note")
    def ask(self, run, file):
        """The result and its patches, fine and coarse."""
        if run not in patches.runs_with_critics(self.services.runs):
            raise ValueError(NO_DISCRIMINATOR if not run else "This run is gone; choose one from the list.")
        critic = patches.critic_of(self.services.runs / run)
        result = record.load(file) if file else self.example()
        pictures = [(result.synthesis, "the result")]
        for name, scores in zip(("fine", "coarse"), patches.patches(critic, result)):
            text = (
                f"{name}: {scores.shape[0]} x {scores.shape[1]} patches, {scores.min():.2f} to "
                f"{scores.max():.2f}; red: doubtful"
            )
            pictures.append((patches.overlay(result, scores), text))
        return {self.pictures: gr.update(value=pictures), self.note: ""}

    def example(self):
        """A small try-on of the bundled pair."""
        from ui.tryon.work import example_pairs

        person, garment = example_pairs()[0]
        return last(self.services.stream_tryon(person, garment, size=SIZE))
