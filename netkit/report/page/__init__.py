"""One self-contained HTML file of a judged run, and the same data as JSON."""

from netkit.report.page.document import MOST_DEVICES, document, page_json
from netkit.report.page.frame import page
from netkit.report.page.view import NO_TRENDS, Reported, Series, Tally, Trends

__all__ = ["MOST_DEVICES", "NO_TRENDS", "Reported", "Series", "Tally", "Trends", "document", "page", "page_json"]
