"""What ran when: the tracks of a Chrome trace, one above the other."""

from __future__ import annotations

from hillinfer.figures.canvas import legend_above, panels, style
from hillinfer.figures.numbers import count, form
from hillinfer.figures.palette import SERIES
from hillinfer.figures.picture import Picture, Table
from hillinfer.figures.reports import Event, Timeline

SHOWN = 120
"""Spans that are drawn, one after the other: some layers of a step."""


def picture(report: Timeline, name: str = "timeline", title: str = "What ran when") -> Picture:
    """The busiest stretch of the run's last quarter: a bar per span, a track per kind of work or thread."""
    tracks, spans = _tracks(report), _spans(report)
    drawn = _stretch(spans)
    begin = min((span.ts for span in drawn), default=0.0)
    end = max((span.ts + span.dur for span in drawn), default=0.0)
    used = [track for track in tracks if any(span.tid == track for span in drawn)]
    with style():
        figure, [axes] = panels(height=1.3 + 0.36 * max(1, len(used)))
        for number, work in enumerate(dict.fromkeys(span.name for span in drawn)):
            colour = SERIES[number % len(SERIES)]
            for place, track in enumerate(reversed(used)):
                mine = [span for span in drawn if (span.name, span.tid) == (work, track)]
                bars = [((span.ts - begin) / 1e3, span.dur / 1e3) for span in mine]
                axes.broken_barh(bars, (place - 0.38, 0.76), facecolor=colour, edgecolor=colour, linewidth=0.5)
            axes.plot([], [], color=colour, linewidth=6, label=work)
        axes.set_yticks(range(len(used)), [tracks[track] for track in reversed(used)])
        axes.set_xlim(0, max((end - begin) / 1e3, 1e-3))
        axes.set_xlabel("ms", loc="right")
        axes.grid(visible=False, axis="y")
        legend_above(figure, axes, columns=4)
    says = f"{(end - begin) / 1e3:.1f} ms of a run, {len(used)} tracks. {_overlap(spans)}"
    return Picture(name, title, says, figure, table(report))


def _stretch(spans: list[Event]) -> list[Event]:
    """Of the last quarter, the spans that follow one another most closely."""
    last = spans[-max(SHOWN, len(spans) // 4) :]
    firsts = range(max(1, len(last) - SHOWN + 1))
    first = min(firsts, key=lambda at: last[min(at + SHOWN, len(last)) - 1].ts - last[at].ts) if last else 0
    return last[first : first + SHOWN]


def table(report: Timeline) -> Table:
    """Of the whole trace, per track and kind of work: how often, how long."""
    tracks, spans = _tracks(report), _spans(report)
    rows = []
    for track, work in dict.fromkeys((span.tid, span.name) for span in spans):
        took = [span.dur / 1e3 for span in spans if (span.tid, span.name) == (track, work)]
        rows.append((tracks[track], work, count(len(took)), form(sum(took), ".1f"), form(sum(took) / len(took), ".3f")))
    return Table(("track", "work", "times", "ms in all", "ms each"), rows, words=2, title="The whole trace, summed up")


def _spans(report: Timeline) -> list[Event]:
    return sorted((event for event in report.traceEvents if event.ph == "X"), key=lambda event: event.ts)


def _tracks(report: Timeline) -> dict[int | str, str]:
    names: dict[int | str, str] = {}
    for event in report.traceEvents:
        if event.ph == "M" and event.name == "thread_name":
            names[event.tid] = str(event.args.get("name", event.tid))
    for span in _spans(report):
        names.setdefault(span.tid, str(span.tid))
    return names


def _overlap(spans: list[Event]) -> str:
    """How much of the time in which anything ran two tracks or more were at work."""
    edges = sorted([(span.ts, 1) for span in spans] + [(span.ts + span.dur, -1) for span in spans])
    busy = both = last = 0.0
    open_now = 0
    for at, change in edges:
        if open_now > 0:
            busy += at - last
        if open_now > 1:
            both += at - last
        open_now, last = open_now + change, at
    return f"In {both / busy:.0%} of the whole run's busy time more than one was at work." if busy else ""
