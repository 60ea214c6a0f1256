"""agents/tools/attached_files.py: csv_page guesses the dialect with `csv.Sniffer`."""

import subprocess
import sys
import tracemalloc
from pathlib import Path

from agents.tools.attached_files import csv_page
from tests.servers.waiting import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]


def test_a_small_csv_with_many_quotes_is_read_in_bounded_time():
    """A 1 KB file keeps the regular expression of the sniffer busy for many minutes (time grows with the fourth power),
    and `re` holds the interpreter's lock meanwhile: nothing of the process answers, and no time-out ends a thread."""
    program = "from agents.tools.attached_files import csv_page\ncsv_page('x,\"a\",b\\n' + '\"' * 1_000 + 'z\\n', 1)"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, timeout=PATIENCE_S, check=True)


def test_doubled_quotes_after_the_beginning_of_a_file_stay_in_their_column():
    """The sniffer sees no doubled quote in the first 10,000 characters and turns them off for the whole file."""
    plain = "".join(f'{number},"said, well","yes"\n' for number in range(700))
    page = csv_page("id,text,last\n" + plain + '700,"she said ""no"", twice","end"\n', 4)
    assert page.rstrip().endswith('"she said ""no"", twice",end')


def test_a_csv_with_the_line_ends_of_a_macintosh_is_read():
    """As Excel's "CSV (Macintosh)" writes it."""
    assert "3,4" in csv_page("a,b\r1,2\r3,4\r", 1)


def test_a_csv_with_one_long_cell_is_read():
    """An export of notes or logs; Python's limit of a cell is 131,072 characters."""
    assert "Ann" in csv_page("name,note\nAnn," + "word " * 30_000 + "\nBob,short\n", 1)


def test_a_page_of_a_csv_with_many_rows_takes_no_more_room_than_the_file():
    """Twenty megabytes of empty rows took 1.5 GB, and four seconds in which no other thread of the process ran."""
    text = "a,b\n" + "\n" * 300_000 + "1,2\n"
    tracemalloc.start()
    try:
        page = csv_page(text, 1_501)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert page.endswith("row,a,b\n300001,1,2\n")
    assert peak_bytes < 8 * 2**20
