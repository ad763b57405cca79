"""The report as one page: everything in it, nothing fetched, good on a desk, a phone and paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from maskoban.evaluation import theme
from maskoban.evaluation.comparison import (
    NOTHING,
    ROWS,
    drawn_how,
    find,
    interval,
    known_ratios,
    percent,
    rounded,
)
from maskoban.evaluation.markup import own_names, pair, table
from maskoban.evaluation.paper import PAPER, TITLE, Stated

Report = dict[str, Any]


def render(report: Report, svgs: Mapping[str, str]) -> str:
    """The page of a report, with its figures by name.

    >>> nothing = {"maskoban": "1", "source": {"name": "best", "boards": 3}, "measures": {}, "notes": {}, "gallery": {}}
    >>> "<h1>best: 3 boards measured</h1>" in render(nothing, {})
    True
    """
    page = _Page(report, svgs)
    sections = [
        ("numbers", "Beside the paper", page.comparison()),
        ("solvability", "Solvability", page.solvability()),
        ("repair", "Repair", page.repair()),
        ("patterns", "Likeness to the corpus", page.patterns()),
        ("memorisation", "Memorisation", page.memorisation()),
        ("difficulty", "Difficulty", page.difficulty()),
        ("gallery", "Nine boards, drawn and solved", page.gallery()),
        ("drawing", "Other ways of drawing", page.drawing()),
        ("training", "Training", page.training()),
    ]
    contents = " ".join(f'<a href="#{name}">{title}</a>' for name, title, _ in sections)
    body = [page.head(), f"<nav>{contents}</nav>"]
    body += [f'<section id="{name}"><h2>{title}</h2>\n{html}</section>' for name, title, html in sections]
    body.append(page.foot())
    here = files("maskoban.evaluation")
    return Template(here.joinpath("page.html").read_text(encoding="utf-8")).substitute(
        title=escape(page.title),
        style=here.joinpath("page.css").read_text(encoding="utf-8") + theme.night_rules(),
        body="\n".join(body),
    )


class _Page:
    """The parts of the page, one method each, in the order in which they are read."""

    def __init__(self, report: Report, svgs: Mapping[str, str]) -> None:
        self.report, self.measures, self.svgs = report, report["measures"], svgs
        self.title = f"{report['source']['name']}: {report['source']['boards']:,} boards measured"
        polished = report["source"].get("polish")
        self.revised = (
            "then every cell once more" if polished else "cell by cell, and no cell is ever revised"
        )

    def head(self) -> str:
        source = self.report["source"]
        if "model" in source:
            steps = "; then ".join(["one cell a step", *drawn_how(source)])
            how = (
                f"Drawn by the model <b>{escape(source['name'])}</b> at temperature 1, {escape(steps)}. All "
                "boards that come out so are measured: the solver had no part in it, it only judges afterwards. "
                f"A board takes {rounded(source['evaluations'])} evaluations of the network{_attempts(source)}."
            )
        else:
            how = f"The boards of {escape(source.get('file', 'a file'))}, as they are."
        strip = self.figure("strip", f"One board being drawn from nothing, {self.revised}.", "wide")
        return (
            f'<p class="kicker">maskoban evaluate</p><h1>{escape(self.title)}</h1><p class="lead">{how} '
            '<span class="stated">In this colour: the paper’s numbers</span> '
            f"({escape(TITLE)}).</p>{strip}{self.headline()}"
        )

    def headline(self) -> str:
        cards = []
        for path, what, paper in (
            (("solvability", "solvable"), "can be solved", PAPER["solvable"]),
            (("repairs", "effective"), "solvable, or one wall away", PAPER["effective"]),
        ):
            share = find(self.measures, *path)
            if share:
                cards.append(_card(percent(share["share"]), what, f"95 %: {interval(share)}", paper))
        ratios = known_ratios(self.report)
        if ratios:
            size = max(ratios, key=int)
            what, more = "times the divergence of real levels", f"at {int(size):,} boards"
            cards.append(_card(f"{ratios[size]:.3f}", what, more, PAPER["jsd_ratio"]))
        distances = self.measures.get("distances")
        if distances:
            what, more = "from the nearest training level", f"median; exact copies: {distances['exact']:,}"
            cards.append(_card(f"{distances['median']:g} cells", what, more, PAPER["distance_median"]))
        return f'<div class="headline">{"".join(cards)}</div>' if cards else ""

    def comparison(self) -> str:
        rows = [
            (
                row.label,
                row.ours(self.report) or NOTHING,
                row.paper.text if row.paper else NOTHING,
                row.paper.where if row.paper else "",
            )
            for row in ROWS
        ]
        beside = table(("", "these boards", "paper", "where in the paper"), rows, "comparison", numbers=False)
        return (
            "<p>Intervals in brackets are 95 % (Wilson for shares). A dash means: not measured here, "
            "or not stated there.</p>" + beside
        )

    def solvability(self) -> str:
        found = self.measures.get("solvability")
        if found is None:
            return self.note("solvability")
        verdicts = [
            (name, f"{found[key]['count']:,}", percent(found[key]["share"], 2), interval(found[key], 2))
            for key, name in (
                ("solvable", "solvable"),
                ("unsolvable", "proved unsolvable"),
                ("malformed", "malformed"),
                ("unknown", "not decided"),
            )
        ]
        boxes = [
            (f"{number} boxes", f"{share['total']:,}", percent(share["share"], 2), interval(share))
            for number, share in found["by_boxes"].items()
        ]
        reasons = [(reason, f"{count:,}") for reason, count in found["malformed_by_reason"].items()]
        tables = table(("verdict", "boards", "share", "95 %"), verdicts)
        tables += table(("by box count", "boards", "solvable", "95 %"), boxes)
        if reasons:
            tables += table(("malformed because", "boards"), reasons)
        return (
            "<p>Every board is solved, or its whole space of pushes is searched and holds no "
            "solution: a verdict is a proof either way. A board without exactly one player, or with "
            "unequal numbers of boxes and goals, is malformed and counts as a failure.</p>"
            + pair(tables, self.figure("key", "The tiles, and the letters they have in level files."))
        )

    def repair(self) -> str:
        found = self.measures.get("repairs")
        if found is None:
            return self.note("repairs")
        rows = [
            (
                label,
                f"{found[key]['count']:,} of {found[key]['total']:,}",
                percent(found[key]["share"], 2),
                paper.text if paper else NOTHING,
            )
            for label, key, paper in (
                ("failures mended by one wall", "one_wall", PAPER["one_wall"]),
                ("failures mended by one or two", "two_walls", None),
                ("solvable, or after one wall", "effective", PAPER["effective"]),
                ("solvable, or after two walls", "effective_two_walls", None),
                ("broken even after two walls", "broken", PAPER["broken"]),
            )
        ]
        html = (
            "<p>Which failures are shallow? Every interior wall, and then every pair of them, is taken "
            "away from each board that cannot be solved, until it can. Failures include malformed boards, "
            "which no wall can mend.</p>"
            + pair(
                table(("", "boards", "share", "paper"), rows),
                self.figure("outcomes", "All boards by what it takes to mend them."),
            )
        )
        html += "<h3>Did the model half know?</h3>" + self.culprits()
        html += self.figure(
            "repaired",
            "The first nine boards that one wall mends: the outlined wall has to go. Where it is known, the "
            "probability with which it was committed stands on it and below.",
            "wide scrolling",
        )
        return html

    def culprits(self) -> str:
        found = self.measures.get("culprits")
        if found is None:
            return self.note("culprits")
        if found["median"] is None:
            return '<p class="note">No board here is mended by one wall.</p>'
        rows = [
            ("culprits", f"{found['walls']:,}", f"{found['median']:.2f}", PAPER["culprit_median"].text),
            (
                "others",
                f"{found['other_walls']:,}",
                f"{found['other_median']:.2f}",
                PAPER["other_median"].text,
            ),
        ]
        told = (
            "<p>When the model committed a wall it gave it a probability. Culprits are the walls whose "
            "removal alone mends a board; the others are the other interior walls of the same "
            f"{found['boards']:,} boards.</p>"
        )
        chart = self.figure("culprits", "Commit probabilities; dotted lines are the medians.")
        return pair(told + table(("walls", "number", "median", "paper"), rows), chart)

    def patterns(self) -> str:
        if "tiles" not in self.measures:
            return self.note("patterns")
        tiles, corpus = self.measures["tiles"]["means"], self.report["corpus"]["tiles"]
        counts = table(
            ("tiles a board", "here", "corpus"),
            [
                (name, f"{mean:.3f}", f"{corpus[name]:.3f}")
                for name, mean in tiles.items()
                if mean >= 0.0005 or corpus[name] >= 0.0005
            ],
        )
        found = self.measures.get("patterns")
        if found is None:
            return self.care("reference") + self.note("patterns") + pair(counts, "")
        rows = [
            (
                f"{int(size):,}",
                _fixed(found["jsd"].get(size), 5),
                _fixed(floor, 5),
                _fixed(found["ratio"].get(size), 3),
            )
            for size, floor in found["held_out"].items()
        ]
        rows.append(("exponent", _fixed(found["exponent"], 2), _fixed(found["held_out_exponent"], 2), ""))
        return (
            self.care("reference")
            + self.care("pattern ratio")
            + "<p>How often does each 3x3 pattern of tiles occur, here and in the levels of the "
            "corpus? The Jensen-Shannon divergence between the two depends on how many boards are "
            "looked at, so it is read against as many held-out levels, which the model never saw: at "
            "a ratio of 1 nothing tells the boards from real ones at this range. "
            '<span class="stated">The paper stays within 4 % of that floor at every size, and falls as '
            "K to the −0.59</span>, which is the slope between 10,000 and 50,000 boards.</p>"
            + pair(
                table(("boards", "JSD", "held-out", "ratio"), rows) + counts,
                self.figure(
                    "patterns",
                    "Divergence against the number of boards, and its ratio to the held-out floor.",
                ),
            )
        )

    def memorisation(self) -> str:
        found = self.measures.get("distances")
        repeats = self.measures.get("duplicates")
        html = (
            "<p>For each board the nearest of the training levels is found: the number of cells in which "
            "they differ, the player erased, for it can walk about without changing the puzzle. What "
            "held-out levels score is what a generator that memorised nothing would score.</p>"
        )
        if found is None:
            html += self.note("distances")
        else:
            held = found["held_out"]
            rows = [
                (label, form(found[key]), form(held[key]), _both(f"distance_{key}"))
                for label, key, form in (
                    ("median cells", "median", "{:g}".format),
                    ("mean cells", "mean", "{:.2f}".format),
                    ("exact copies", "exact", "{:,}".format),
                    ("within five cells", "within_five", lambda share: percent(share["share"])),
                )
            ]
            if "same_puzzle" in found:
                here, held_out = (
                    f"{found[key]['count']:,}" for key in ("same_puzzle", "held_out_same_puzzle")
                )
                rows.append(("copies turned, mirrored or shifted too", here, held_out, NOTHING))
            html += pair(
                table(("", "here", "held-out", "paper: both"), rows) + _repeats(repeats),
                self.figure(
                    "distances", f"Cells to the nearest of {found['corpus_levels']:,} training levels."
                ),
            )
        return html + (_repeats(repeats) if found is None else "")

    def difficulty(self) -> str:
        found = self.measures.get("difficulty")
        if found is None:
            return self.note("difficulty")
        rows = []
        for key, name in (("effort", "effort"), ("pushes", "pushes")):
            each = found[key]
            if each is None:
                continue
            rows += [
                (f"{name}, {word}", f"{each['percentiles'][at]:,}", f"{each['corpus_percentiles'][at]:,}")
                for at, word in ((25, "lower quartile"), (50, "median"), (75, "upper quartile"))
            ]
            rows.append((f"{name}, mean", f"{each['mean']:,.1f}", f"{each['corpus_mean']:,.1f}"))
        quarters = [
            (word, f"{share['count']:,}", percent(share["share"]), interval(share))
            for word, share in found["quarters"].items()
        ]
        return (
            self.care("efforts")
            + "<p>Effort is the number of states a plain breadth-first search of pushes expands before "
            "it finds a solution. The quarters of Boxoban's medium training levels by effort are called easy, "
            "medium, hard and expert; a generator that is neither easier nor harder than those "
            "puts a quarter of its boards in each.</p>"
            + pair(
                table(("over solvable boards", "here", found.get("against", "Boxoban")), rows)
                if rows
                else "",
                self.figure(
                    "difficulty", "Share of boards that need at most so much effort, or so many pushes."
                ),
            )
            + pair(
                table(("quarter", "boards", "share", "95 %"), quarters),
                self.figure(
                    "quarters",
                    "Share of boards in each quarter of Boxoban's levels; bars at the top are 95 % intervals.",
                ),
            )
        )

    def gallery(self) -> str:
        html = self.note("denoising") + self.figure(
            "denoising",
            "The first nine boards of the sample that can be solved, at six points of being drawn in random "
            f"order, {self.revised}. Difficulty and fewest pushes are the solver’s judgement afterwards.",
            "wide scrolling",
        )
        html += self.figure(
            "solutions",
            "The first nine solvable boards at six points of a solution with the fewest pushes.",
            "wide scrolling",
        )
        return html

    def drawing(self) -> str:
        if "temperature" not in self.measures:
            return self.note("drawing")
        count = self.measures["temperature"][0]["boards"]
        kept = [each for each in self.measures.get("critic", []) if each["critic"]]
        told_of_critic = (
            " A critic tells finished drawings from the corpus’s boards, and what does not pass for one of those is "
            "drawn again from the beginning; it never saw a solver either."
            if kept
            else ""
        )
        html = (
            f"<p>{count:,} boards for each setting. Below temperature 1 likely tiles become likelier. "
            '<span class="stated">The paper finds that more boards can be solved then, but that they fill up '
            f"with walls and become easier; from 1.0 to 0.6: {PAPER['cool_gain'].text}, walls "
            f"{PAPER['walls'].text} to {PAPER['cool_walls'].text}, median effort "
            f"{PAPER['cool_effort'].text}.</span></p>"
            + pair(
                _settings(
                    "temperature", self.measures["temperature"], lambda each: f"{each['temperature']:g}"
                ),
                self.figure(
                    "temperature", "Solvability and walls against temperature; bands are 95 % intervals."
                ),
            )
            + "<h3>Which cell next?</h3><p>Cells are revealed in random order; the other way draws a tile for every "
            "cell and commits the one that was the most probable. "
            '<span class="stated">The paper finds that this drowns boards in walls, '
            f"the surest tile of all: {PAPER['walls'].text} become {PAPER['confidence_walls'].text}.</span></p>"
            + pair(_settings("order", self.measures["order"], lambda each: each["order"]), "")
            + "<h3>What does quality cost?</h3><p>Fewer steps reveal several cells at once, each unaware "
            "of the others. A polish sweep masks every cell once more and redraws it from the model given "
            f"all others; no solver is involved.{told_of_critic}</p>"
        )
        costs = self.measures["steps"] + self.measures["polish"][1:] + kept
        ways = _settings("network evaluations", costs, _way)
        size = costs[0]["jsd_boards"]
        told = f"; divergence at {size:,} boards" if size else ""
        html += pair(ways, self.figure("cost", f"Quality against the evaluations a board takes{told}."))
        return self.care("median effort") + self.note("JSD ratio") + html

    def training(self) -> str:
        found = self.measures.get("training")
        if found is None:
            return self.note("training")
        last = found["losses"][-1]
        rows = [
            (f"{each['step']:,}", percent(each["solvable"]["share"]), interval(each["solvable"]))
            for each in found["solvability"]
        ]
        html = (
            f"<p>{last['step']:,} steps; the last losses are {_fixed(last['train'], 4)} in training and "
            f"{_fixed(last['valid'], 4)} on held-out levels. "
            '<span class="stated">The paper finds that the loss flattens early while solvability goes on '
            "rising: it is a property of whole boards, which the loss of single cells hardly shows.</span></p>"
        )
        if found["missing"]:
            html += (
                '<p class="note">Not beside the log, so not judged: '
                f"{escape(', '.join(found['missing']))}.</p>"
            )
        rates = table(("step", "solvable", "95 %"), rows) if rows else ""
        html += pair(
            rates, self.figure("training", "Losses, and the solvability of boards drawn on the way.")
        )
        return html

    def foot(self) -> str:
        facts = self.report["source"].get("model", {}) | self.report["source"]
        known = {key: value for key, value in facts.items() if key != "model" and value is not None}
        told = (
            f"{key.replace('_', ' ')} {f'{value:g}' if isinstance(value, float) else value}"
            for key, value in known.items()
        )
        return (
            f"<footer><p>Made by maskoban {escape(self.report['maskoban'])}. Every number is in "
            "report.json, every figure with its data in the folder figures.</p>"
            f"<p>{escape(' · '.join(told))}</p></footer>"
        )

    def figure(self, name: str, caption: str, kind: str = "") -> str:
        """A figure where there is one, its picture in the page itself."""
        if name not in self.svgs:
            return ""
        svg = own_names(self.svgs[name], name)
        svg = svg.replace("<svg", f'<svg role="img" aria-label="{escape(caption)}"', 1)
        if "scrolling" in kind:
            svg = f'<div class="scroll" tabindex="0">{svg}</div>'
        return f'<figure class="{kind}">{svg}<figcaption>{caption}</figcaption></figure>'

    def care(self, name: str) -> str:
        """What to bear in mind with numbers that are there."""
        why = self.report["notes"].get(name)
        return f'<p class="note">Read with care: {escape(why)}.</p>' if why else ""

    def note(self, name: str) -> str:
        """Why something is not there."""
        why = self.report["notes"].get(name)
        return f'<p class="note">Not measured: {escape(why)}.</p>' if why else ""


def _card(number: str, what: str, more: str, paper: Stated) -> str:
    stated = f'<span class="stated">paper {paper.text}</span>'
    return f"<div><b>{number}</b>{what}<br><small>{more} · {stated}</small></div>"


def _settings(head: str, settings: list[Any], name: Callable[[Any], str]) -> str:
    usual = settings[0]["boards"]
    rows = [
        (
            name(each)
            + (
                ""
                if each["boards"] == usual
                else f" ({each['boards']:,} boards, JSD at {each['jsd_boards']:,})"
            ),
            f"{percent(each['solvable']['share'])} ({interval(each['solvable'])})",
            f"{each['walls']['mean']:.2f}",
            NOTHING if each["median_effort"] is None else f"{each['median_effort']:,.0f}",
            _fixed(each["jsd_ratio"], 3),
        )
        for each in settings
    ]
    return table((head, "solvable", "walls", "effort", "JSD ratio"), rows)


def _way(setting: Any) -> str:
    sweeps = setting["polish"]
    swept = f", {sweeps} sweep{'s' if sweeps > 1 else ''}" if sweeps else ""
    return f"{rounded(setting['evaluations'])}{swept}{', critic' if setting['critic'] else ''}"


def _attempts(source: Any) -> str:
    return "" if source["critic"] is None else f" in {source['attempts']:.2f} attempts"


def _repeats(found: Any) -> str:
    if not found:
        return ""
    rows = [
        ("exactly", f"{found['exact']['count']:,}", percent(found["exact"]["share"], 2)),
        (
            "turned or mirrored too",
            f"{found['under_symmetry']['count']:,}",
            percent(found["under_symmetry"]["share"], 2),
        ),
    ]
    return table(("boards that repeat another", "boards", "share"), rows)


def _both(key: str) -> str:
    return f"{PAPER[key].text} / {PAPER[f'held_out_{key}'].text}"


def _fixed(number: float | None, digits: int) -> str:
    return NOTHING if number is None else f"{number:.{digits}f}".replace("-", "−")
