#!/usr/bin/env python3
"""Turns ctest's JUnit file into the closing line of scripts/test.sh.

usage: count_tests.py RESULTS.xml CTEST_EXIT_CODE
Prints "N passed, N failed[, N skipped]"; exits 0 only if some passed, none failed and ctest agrees.
"""
import sys
import xml.etree.ElementTree

# What ctest writes for a test that chose not to run; any other test that did not run has failed
# (its program is missing, or a fixture broke).
CHOSEN = ("SKIP_RETURN_CODE", "SKIP_REGULAR_EXPRESSION", "Disabled")


def verdict(case):
    status = case.get("status")
    if status == "run":
        return "passed"
    skipped = case.find("skipped")
    message = skipped.get("message", "") if skipped is not None else ""
    if status == "disabled" or (status == "notrun" and message.startswith(CHOSEN)):
        return "skipped"
    return "failed"


def count(path):
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for case in xml.etree.ElementTree.parse(path).iter("testcase"):
        counts[verdict(case)] += 1
    return counts


def main(path, ctest_exit_code):
    try:
        counts = count(path)
    except (OSError, xml.etree.ElementTree.ParseError) as error:
        print(f"error: ctest left no readable results ({error}): see its messages above.",
              file=sys.stderr)
        counts = {"passed": 0, "failed": 0, "skipped": 0}
    line = f"{counts['passed']} passed, {counts['failed']} failed"
    if counts["skipped"]:
        line += f", {counts['skipped']} skipped"
    if counts["passed"] + counts["failed"] == 0:
        print("error: no test ran: check the arguments given to scripts/test.sh.", file=sys.stderr)
    print(line, flush=True)
    return 0 if counts["passed"] and not counts["failed"] and ctest_exit_code == 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
