"""The table at the end of a run: where the KV cache lay, and what it cost."""

from __future__ import annotations

from rich.table import Table

from hillinfer.cli.console import human_bytes
from hillinfer.report import Report


def report_table(report: Report) -> Table:
    """Rows of tiers (bytes now, at peak), of traffic, and of speed."""
    title = f"{report.model}, policy {report.policy}"
    if report.drops:
        title += " (drops tokens)"
    if report.alpha is not None:
        title += f", α = {report.alpha:g}"
    elif report.budget is not None:
        title += f", budget {report.budget}"
    table = Table(title=title, title_justify="left", title_style="bold", caption_justify="left")
    table.add_column("")
    table.add_column("now", justify="right")
    table.add_column("at peak", justify="right")

    tiers = report.tiers
    for name, tier in (
        ("device tier", tiers.device),
        ("hot pool (DRAM)", tiers.hot),
        ("cold pool (files)", tiers.cold),
    ):
        table.add_row(f"KV in the {name}", human_bytes(tier.bytes), human_bytes(tier.peak_bytes))
    if report.scoring_copy is not None:
        copy = tiers.scoring
        table.add_row(_copied(report), human_bytes(copy.bytes), human_bytes(copy.peak_bytes))
    table.add_row("process memory (RSS), measured", "", human_bytes(report.rss_peak_bytes), end_section=True)

    table.add_row("hot-pool hit rate", _share(report.hot_hit_rate), "")
    table.add_row("share of the pool moved per step", _share(report.moved_fraction), "")
    table.add_row("read from the cold pool", human_bytes(report.cold_read_bytes), "")
    if report.lookahead_rows:
        table.add_row("of what was read, foreseen", _share(report.lookahead_hit_rate), "")
    table.add_row(_scanned(report), human_bytes(report.device_scan_bytes), "")
    work = f"{report.device_launches:,} in {report.device_seconds:.2f} s" if report.device_launches else "–"
    table.add_row("launches of the device", work, "", end_section=report.balance_error is None)
    if report.balance_error is not None:
        table.add_row("share scored by the host", _share(report.host_share), "")
        table.add_row("one path waits for the other", _share(report.balance_error), "", end_section=True)

    cut = f" ({report.document_tokens_cut} cut from the document)" if report.document_tokens_cut else ""
    table.add_row(f"prompt tokens{cut}", str(report.prompt_tokens), "")
    table.add_row("new tokens", str(report.new_tokens), "")
    if report.drops:
        table.add_row("dropped for good, per KV head", f"{report.dropped_tokens:,.0f} tokens", "")
    for event, times in report.events.items():
        table.add_row(event, f"{times:,}", "")
    table.add_row("prefill", f"{report.prefill_tokens_per_s:,.0f} tokens/s", "")
    decode = report.decode_ms_per_token
    table.add_row("decode", "–" if decode is None else f"{decode:.1f} ms/token", "")
    return table


def _copied(report: Report) -> str:
    where = "DRAM" if report.device in (None, "software") else report.device
    return f"scoring copy {report.scoring_copy} ({where})"


def _scanned(report: Report) -> str:
    if report.device_fallback is not None:
        return f"scanned by {report.device}, then by software (it failed: {report.device_fallback})"
    return "scanned by the device" if report.device in (None, "software") else f"scanned by the device {report.device}"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.2%}"
