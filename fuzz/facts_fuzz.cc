// Any text as a machine file and as a catalogue: an answer or an error, never a crash; and what was
// read as a machine is written and read again as the same.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "capability/catalog.h"
#include "device/machine.h"

namespace {

using namespace topknot;  // NOLINT: a program of one file

void machine(const std::string& text) {
  const auto read = device::parse_machine(text, "fuzz");
  if (!read) return;
  const std::string written = device::machine_to_json(*read);
  const auto again = device::parse_machine(written, "fuzz");
  if (!again || !(*again == *read)) std::abort();
}

void catalog(const std::string& text) {
  const auto read = capability::parse_catalog(text, "fuzz");
  if (!read) return;
  capability::Facts asked;
  asked.set(capability::Fact::kSm, 120).set(capability::Fact::kHeads, 8);
  for (const auto& choice : capability::evaluate_catalog(*read, asked)) {
    if (!choice.candidates.empty() && capability::explain(choice).empty()) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  machine(text);
  catalog(text);
  return 0;
}
