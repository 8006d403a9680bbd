"""A violation of the layers is found; the lawful cases are not."""
import unittest

from tree import Tree, tool

check_layers = tool("check_layers")


class CheckLayers(unittest.TestCase):
    def problems(self, **files):
        with Tree(files) as root:
            return check_layers.check(root)

    def test_an_include_from_a_higher_layer_is_named_with_its_line(self):
        found = self.problems(**{
            "src/kvcache/page_pool.cc":
                '#include "kvcache/page_pool.h"\n\n#include "model/config.h"\n'})
        self.assertEqual(len(found), 1)
        self.assertRegex(found[0], r"^src/kvcache/page_pool\.cc:3: includes model/config\.h "
                                   r"\(layer 6 from layer 4\): ")

    def test_folders_of_one_layer_do_not_include_each_other(self):
        found = self.problems(**{"src/gguf/reader.cc": '#include "tokenizer/bpe.h"\n'})
        self.assertRegex(found[0], r"\(layer 2 from layer 2\)")

    def test_tests_beside_the_code_obey_too(self):
        self.assertEqual(len(self.problems(**{
            "src/base/strings_test.cc": '#include "engine/engine.h"\n'})), 1)

    def test_lower_layers_own_folder_public_headers_and_system_headers_are_lawful(self):
        self.assertEqual(self.problems(**{"src/model/forward.cc": (
            '#include <vector>\n#include "attention/registry.h"\n#include "base/strings.h"\n'
            '#include "model/config.h"\n#include "topknot/error.h"\n')}), [])

    def test_only_tests_use_helpers_of_tests(self):
        helper = {"tests/golden/npz.h": "#pragma once\n"}
        self.assertEqual(self.problems(**helper, **{
            "src/model/forward_test.cc": '#include "golden/npz.h"\n'}), [])
        self.assertEqual(len(self.problems(**helper, **{
            "src/model/forward.cc": '#include "golden/npz.h"\n'})), 1)

    def test_a_folder_without_a_layer_and_a_path_without_a_folder_are_problems(self):
        self.assertRegex(self.problems(**{"src/misc/a.cc": ""})[0], "folder misc has no layer")
        self.assertRegex(self.problems(**{
            "src/base/a.cc": '#include "strings.h"\n'})[0], "write the path from src/")

    def test_public_headers_stand_alone(self):
        self.assertRegex(self.problems(**{
            "src/base/a.cc": "", "include/topknot/engine.h": '#include "base/strings.h"\n'})[0],
            "include/topknot is installed")


if __name__ == "__main__":
    unittest.main()
