"""`tracekit plot`: charts of a run, for papers."""

import argparse
from pathlib import Path

from tracekit.cli.arguments import Verb, add_baseline, add_confidential, add_inputs, add_knowledge
from tracekit.cli.opening import open_given
from tracekit.cli.output import STDOUT, add_output, deliver, overwriting

# The modules of tracekit.plots, which takes longer to import than to list.
_KINDS = sorted(path.stem for path in (Path(__file__).parents[1] / "plots").glob("[a-z]*.py"))
_FORMS = ("svg", "png", "pdf")


class PlotVerb(Verb):
    """Draw a chart of a run: where the time goes, what changed from the baseline, steps, lines; of a run or a study:
    time and memory."""

    name = "plot"
    reads_traces = True

    @staticmethod
    def arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        add_inputs(parser)
        add_knowledge(parser)
        add_confidential(parser)
        add_baseline(parser)
        parser.add_argument(
            "--kind", choices=_KINDS, help="which chart to draw (default: attribution; of a study: measures)"
        )
        add_output(parser, "the .svg, .png or .pdf file to write; - writes SVG to stdout", required=True)

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        """Draw it."""
        from tracekit.errors.asking import OutputError
        from tracekit.plots import plot
        from tracekit.report import report

        to_file = options.output != STDOUT
        form = options.output.suffix.lower().removeprefix(".") if to_file else "svg"
        if form not in _FORMS:
            raise OutputError(options.output, "its name must end in .svg, .png or .pdf")
        spared = overwriting(options, options.inputs)
        if to_file:
            spared.refuse(options.output)
        with open_given(options.inputs, options) as subject:
            opened = report(subject, options.baseline)
            kind = options.kind or ("attribution" if opened.subject.study is None else "measures")
            content = plot(opened, kind).content(form)
        deliver(content if to_file else content.decode(), options, spared)
        return 0
