"""What ran when: the tracks of a Chrome trace, one above the other."""

from __future__ import annotations

from hillinfer.figures.canvas import legend_above, panels, style
from hillinfer.figures.numbers import count, form
from hillinfer.figures.palette import SERIES
from hillinfer.figures.picture import Picture, Table
from hillinfer.figures.reports import Event, Timeline

SHOWN = 60_000.0
"""Microseconds at the end of the trace that are drawn: a step or a few."""


def picture(report: Timeline, name: str = "timeline", title: str = "What ran when") -> Picture:
    """The last 60 ms, a bar per span, a track per kind of work or thread."""
    tracks, spans = _tracks(report), _spans(report)
    end = max((span.ts + span.dur for span in spans), default=0.0)
    begin = max(end - SHOWN, min((span.ts for span in spans), default=0.0))
    late = [span for span in spans if span.ts >= begin]
    used = [track for track in tracks if any(span.tid == track for span in late)]
    with style():
        figure, [axes] = panels(height=1.2 + 0.36 * max(1, len(used)))
        for number, work in enumerate(dict.fromkeys(span.name for span in late)):
            for place, track in enumerate(reversed(used)):
                bars = [
                    ((span.ts - begin) / 1e3, span.dur / 1e3) for span in late if (span.name, span.tid) == (work, track)
                ]
                if bars:
                    colour = SERIES[number % len(SERIES)]
                    axes.broken_barh(bars, (place - 0.38, 0.76), facecolor=colour, edgecolor="none")
            axes.plot([], [], color=SERIES[number % len(SERIES)], linewidth=6, label=work)
        axes.set_yticks(range(len(used)), [tracks[track] for track in reversed(used)])
        axes.set_xlim(0, max((end - begin) / 1e3, 1e-3))
        axes.set_xlabel("ms", loc="right")
        axes.grid(visible=False, axis="y")
        legend_above(figure, axes, columns=4)
    says = f"The last {(end - begin) / 1e3:.0f} ms of a run, on {len(used)} tracks. {_overlap(spans)}"
    return Picture(name, title, says, figure, table(report))


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
    return f"In {both / busy:.0%} of the busy time more than one thing was at work." if busy else ""
