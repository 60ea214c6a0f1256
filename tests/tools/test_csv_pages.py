"""csv_page: unusual quotes, line ends and cells, in bounded time and memory."""

import subprocess
import sys
import tracemalloc
from pathlib import Path

from agents.tools.attached_files import csv_page
from tests.servers.waiting import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]


def test_a_small_csv_with_many_quotes_is_read_in_bounded_time():
    """csv.Sniffer would take many minutes for this 1 KB file: its time grows with the fourth power of the quotes. `re`
    holds the GIL meanwhile, so the whole process would block, and no timeout could end it."""
    program = "from agents.tools.attached_files import csv_page\ncsv_page('x,\"a\",b\\n' + '\"' * 1_000 + 'z\\n', 1)"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, timeout=PATIENCE_S, check=True)


def test_doubled_quotes_late_in_a_file_stay_in_their_column():
    """csv.Sniffer would see no doubled quote in the first 10,000 characters and disable them for the whole file."""
    plain = "".join(f'{number},"said, well","yes"\n' for number in range(700))
    page = csv_page("id,text,last\n" + plain + '700,"she said ""no"", twice","end"\n', 4)
    assert page.rstrip().endswith('"she said ""no"", twice",end')


def test_a_csv_with_carriage_returns_as_line_ends_is_read():
    """Excel's "CSV (Macintosh)" ends each line with a carriage return."""
    assert "3,4" in csv_page("a,b\r1,2\r3,4\r", 1)


def test_a_csv_without_rows_is_said_to_have_none():
    assert csv_page("", 1) == "0 rows (page 1 of 1).\n\nrow\n"
    assert csv_page("a,b\n", 1) == "0 rows (page 1 of 1).\n\nrow,a,b\n"
    assert csv_page("a,b\n1,2\n", 1).startswith("Rows 1 to 1 of 1 (page 1 of 1).")


def test_a_csv_with_one_long_cell_is_read():
    """Exports of notes or logs may exceed 131,072 characters in a cell, the default limit of Python."""
    assert "Ann" in csv_page("name,note\nAnn," + "word " * 30_000 + "\nBob,short\n", 1)


def test_a_page_of_a_csv_with_many_rows_takes_little_memory():
    """A list of all rows would take 1.5 GB for 20 MB of empty rows, and block all other threads for four seconds."""
    text = "a,b\n" + "\n" * 300_000 + "1,2\n"
    tracemalloc.start()
    try:
        page = csv_page(text, 1_501)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert page.endswith("row,a,b\n300001,1,2\n")
    assert peak_bytes < 8 * 2**20
