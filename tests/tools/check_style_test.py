"""Each rule of tools/check_style.py finds its violation, and lets good code pass."""
import unittest

from tree import Tree, tool

check_style = tool("check_style")

GOOD_HEADER = "// What it is for.\n#pragma once\n"


def function_of(lines):
    return "int f(int x) {\n" + "  x += 1;\n" * (lines - 2) + "}\n"


class CheckStyle(unittest.TestCase):
    def problems(self, path, text, readme="# base\n"):
        with Tree({path: text, "src/base/README.md": readme}) as root:
            return check_style.check(root)

    def assert_found(self, expected, path, text, **more):
        found = self.problems(path, text, **more)
        self.assertEqual(len(found), 1, found)
        self.assertRegex(found[0], expected)

    def assert_good(self, path, text):
        self.assertEqual(self.problems(path, text), [])

    def test_good_files_pass(self):
        self.assert_good("src/base/a.h", GOOD_HEADER)
        self.assert_good("src/base/a.cc", "// Why.\n" + function_of(70))

    def test_columns(self):
        self.assert_good("src/base/a.cc", "// " + "x" * 97 + "\n")
        self.assert_found(r"a\.cc:1: 101 columns", "src/base/a.cc", "// " + "x" * 98 + "\n")
        self.assert_good("src/base/a.cc", "// " + "é" * 97 + "\n")

    def test_tabs_and_trailing_blanks(self):
        self.assert_found("a tab", "src/base/a.cc", "// a\n\tint x;\n")
        self.assert_found("blanks at the end", "src/base/a.cc", "// a \n")

    def test_heads(self):
        self.assert_found("no comment at the head", "src/base/a.h", "#pragma once\n")
        self.assert_found("no comment at the head", "src/base/a.cc", "int x;\n")
        self.assert_good("src/base/a_test.cc", "#include <x>\n")

    def test_pragma_once_and_using_namespace(self):
        self.assert_found("no #pragma once", "src/base/a.h", "// a\n")
        self.assert_found(r"a\.h:3: using namespace", "src/base/a.h",
                          GOOD_HEADER + "using namespace std;\n")

    def test_names(self):
        self.assert_found("not snake_case", "src/base/PagePool.cc", "// a\n")
        self.assert_found("not snake_case", "tools/check-style.py", "")

    def test_todo_needs_an_issue(self):
        word = "TO" + "DO"
        self.assert_found("without its issue", "src/base/a.cc", f"// {word}: later\n")
        self.assert_good("src/base/a.cc", f"// {word}(#12): later\n")

    def test_long_files(self):
        self.assert_found("601 lines", "src/base/a.cc", "// a\n" * 601)
        self.assert_good("src/base/table.inc", "1,\n" * 700)

    def test_readmes(self):
        self.assert_found("11 lines", "src/base/a.cc", "// a\n", readme="x\n" * 11)
        with Tree({"src/gguf/a.cc": "// a\n"}) as root:
            self.assertRegex(check_style.check(root)[0], r"^src/gguf/README\.md:1: missing")

    def test_machine_paths_and_registry_hosts(self):
        self.assert_found("path of one machine", "docs/a.md", "see /wo" + "rk/main\n")
        self.assert_found("path of one machine", "docs/a.md", "see /ho" + "me/someone\n")
        self.assert_found("host of a package registry", "scripts/a.sh",
                          "curl http://deb." + "example.org/debian\n")
        self.assert_good("docs/a.md", "in ~/models and build/work/x; https://arxiv.org/abs/1\n")

    def test_long_functions(self):
        for head in ("int f(int x) {", "Foo::Foo(int a) : a_{a}, b_(2) {", "auto f() -> int {",
                     "template <class T>\nvoid f(T t) const noexcept {", "TEST(A, B) {"):
            body = "  g();\n" * 70
            self.assert_found("a function of 7[1-3] lines", "src/base/a.cc",
                              f"// a\nnamespace x {{\n{head}\n{body}}}\n}}\n")

    def test_long_tables_classes_and_excused_functions_pass(self):
        rows = "  {1, f(2)},\n" * 90
        self.assert_good("src/base/a.cc", f"// a\nconstexpr Row kRows[] = {{\n{rows}}};\n")
        members = "  int f() { return 1; }\n" * 90
        self.assert_good("src/base/a.cc", f"// a\nstruct S {{\n{members}}};\n")
        excuse = "// NOLINT" + "NEXTLINE(readability-function-size): one case a line\n"
        self.assert_good("src/base/a.cc", "// a\n" + excuse + function_of(90))

    def test_braces_in_strings_and_comments_do_not_count(self):
        text = "// a\n" + "int f() {\n  // }\n  g(\"}\");\n  h('}');\n" + "  g();\n" * 70 + "}\n"
        self.assert_found("a function of 75 lines", "src/base/a.cc", text)


if __name__ == "__main__":
    unittest.main()
