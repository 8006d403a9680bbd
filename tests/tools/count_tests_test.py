"""The closing line of scripts/test.sh tells the truth about ctest's results."""
import contextlib
import io
import os
import unittest

from tree import Tree, tool

count_tests = tool("count_tests")

PASSED = '<testcase name="a" status="run"/>'
FAILED = '<testcase name="b" status="fail"><failure message=""/></testcase>'
SKIPPED = '<testcase name="c" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/></testcase>'
DISABLED = '<testcase name="d" status="disabled"><skipped message="Disabled"/></testcase>'
NOT_BUILT = ('<testcase name="e" status="notrun">'
             '<skipped message="Unable to find executable"/></testcase>')


class CountTests(unittest.TestCase):
    def run_main(self, cases, ctest_exit_code=0):
        with Tree({"results.xml": f"<testsuite>{''.join(cases)}</testsuite>"}) as root:
            out = io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
                status = count_tests.main(os.path.join(root, "results.xml"), ctest_exit_code)
            return status, out.getvalue()

    def test_all_passed(self):
        self.assertEqual(self.run_main([PASSED] * 3), (0, "3 passed, 0 failed\n"))

    def test_skipped_tests_are_counted_apart(self):
        self.assertEqual(self.run_main([PASSED, SKIPPED, DISABLED]),
                         (0, "1 passed, 0 failed, 2 skipped\n"))

    def test_a_failure_and_a_program_that_was_not_built_fail(self):
        self.assertEqual(self.run_main([PASSED, FAILED], 8), (1, "1 passed, 1 failed\n"))
        self.assertEqual(self.run_main([PASSED, NOT_BUILT]), (1, "1 passed, 1 failed\n"))

    def test_no_test_is_a_failure(self):
        self.assertEqual(self.run_main([]), (1, "0 passed, 0 failed\n"))
        self.assertEqual(self.run_main([SKIPPED])[0], 1)

    def test_ctests_own_verdict_counts(self):
        self.assertEqual(self.run_main([PASSED], 8)[0], 1)

    def test_missing_results_are_a_failure(self):
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(count_tests.main("/nonexistent/results.xml", 0), 1)


if __name__ == "__main__":
    unittest.main()
