// What other engines accept, as the same kind of rules that our own implementations state, each
// with its source; read from docs/catalog/*.json (docs/catalog/README.md has the schema). Answers
// which of an engine's implementations would run what is asked, and why the others refuse.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "capability/rules.h"
#include "topknot/error.h"

namespace topknot::capability {

inline constexpr int64_t kMaxFactValue = int64_t{1} << 40;

// A Rule that owns its texts.
struct CatalogRule {
  Fact fact = Fact::kDevice;
  Accepts accepts;
  std::string because;  // ends with the source: "no LSE is returned [vllm#47779]"
  std::string remedy;
  std::string source;
  // Valid as long as this object.
  Rule rule() const { return {fact, accepts, because.c_str(), remedy.c_str()}; }
};

struct CatalogEntry {
  std::string name;
  std::string note;  // may be empty
  std::vector<CatalogRule> rules;
};

// The names tried, best first, where every `when` holds. The others run only when they are named.
struct CatalogOrder {
  std::vector<CatalogRule> when;
  std::vector<std::string> names;
  std::string source;
};

struct CatalogOperation {
  std::string name;                  // "attention", "indexer_scores", "cache_writer", "weights"
  std::vector<CatalogOrder> orders;  // the first that holds; none stated: that of the entries
  std::vector<CatalogEntry> entries;
};

struct Catalog {
  std::string name;    // "vllm-2026-02"
  std::string engine;  // "vLLM"
  std::string as_of;   // "2026-02"
  std::string about;
  std::vector<CatalogOperation> operations;
};

// The text of a catalogue. `where` names it in errors: one, with every problem.
Result<Catalog> parse_catalog(const std::string& text, std::string_view where);

// A catalogue by name, installed beside the program, or by path.
Result<std::string> find_catalog_file(std::string_view name_or_path);
Result<Catalog> read_catalog(std::string_view name_or_path);
std::vector<std::string> catalog_names();

// The engine's own choice among its implementations of one operation, or the one named `forced`.
// Candidates: those of the order that holds, then the rest with a refusal that says so.
Choice evaluate(const CatalogOperation& operation, const Facts& asked,
                std::string_view forced = {});

// One choice for each operation; the engine would run what is asked if each has one.
std::vector<Choice> evaluate_catalog(const Catalog& catalog, const Facts& asked);
bool all_chosen(std::span<const Choice> choices);
// Null when the catalogue does not have that operation.
const Choice* find_choice(std::span<const Choice> choices, std::string_view operation);

}  // namespace topknot::capability
