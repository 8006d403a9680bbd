// Reading catalogue files, with every problem at once. Schema: docs/catalog/README.md.
#include <algorithm>

#include "base/json_reader.h"
#include "base/strings.h"
#include "base/try.h"
#include "capability/catalog.h"

namespace topknot::capability {
namespace {

struct Form {
  const char* key;
  Accepts::Kind kind;
  bool list;     // of values
  bool ordered;  // only for facts that are numbers
};
constexpr Form kForms[] = {
    {"exactly", Accepts::Kind::kExactly, false, false},
    {"at_least", Accepts::Kind::kAtLeast, false, true},
    {"at_most", Accepts::Kind::kAtMost, false, true},
    {"between", Accepts::Kind::kBetween, true, true},
    {"multiple_of", Accepts::Kind::kMultipleOf, false, true},
    {"one_of", Accepts::Kind::kOneOf, true, false},
};

std::string joined(std::span<const std::string_view> names) {
  std::string out;
  for (const std::string_view name : names) out += cat(out.empty() ? "" : ", ", name);
  return out;
}

// A value of `fact`: a whole number, or one of its names.
std::optional<int64_t> read_value(Fact fact, const Json& value, const std::string& path,
                                  JsonProblems* problems) {
  const auto names = fact_value_names(fact);
  if (names.empty()) {
    if (value.is_number_unsigned() && value.get<uint64_t>() <= uint64_t{kMaxFactValue}) {
      return value.get<int64_t>();
    }
    problems->add(path, cat("a whole number of 0 to ", kMaxFactValue), shown(value));
    return std::nullopt;
  }
  if (value.is_string()) {
    const auto found = std::find(names.begin(), names.end(), value.get_ref<const std::string&>());
    if (found != names.end()) return found - names.begin();
  }
  problems->add(path, cat("one of ", joined(names)), shown(value));
  return std::nullopt;
}

std::optional<Accepts> read_values(const Form& form, Fact fact, const Json& json,
                                   const std::string& path, JsonProblems* problems) {
  Accepts accepts{.kind = form.kind};
  if (form.ordered && !fact_value_names(fact).empty()) {
    problems->add(path, "exactly or one_of: the values have names", form.key);
    return std::nullopt;
  }
  const size_t most = form.kind == Accepts::Kind::kBetween ? 2 : Accepts::kMaxValues;
  const size_t least = form.kind == Accepts::Kind::kBetween ? 2 : 1;
  if (form.list && (!json.is_array() || json.size() < least || json.size() > most)) {
    problems->add(path, cat("a list of ", least, " to ", most, " values"), shown(json));
    return std::nullopt;
  }
  const Json one = form.list ? Json() : Json::array({json});
  for (const Json& item : form.list ? json : one) {
    const auto value = read_value(fact, item, path, problems);
    if (!value) return std::nullopt;
    accepts.values[accepts.count++] = *value;
  }
  if (form.kind == Accepts::Kind::kMultipleOf && accepts.values[0] == 0) {
    problems->add(path, "at least 1", "0");
    return std::nullopt;
  }
  if (form.kind == Accepts::Kind::kBetween && accepts.values[0] > accepts.values[1]) {
    problems->add(path, "the lower end first", shown(json));
    return std::nullopt;
  }
  return accepts;
}

std::optional<Fact> read_fact(JsonObject* from) {
  const auto name = from->text("fact", Need::kRequired);
  if (!name) return std::nullopt;
  if (const auto fact = fact_from_name(*name)) return fact;
  std::vector<std::string> names;
  for (size_t i = 0; i < kFactCount; ++i) names.emplace_back(fact_name(static_cast<Fact>(i)));
  const auto near = nearest(*name, names, 1);
  from->problems().add(from->path_of("fact"),
                       near.empty() ? "a fact" : cat("a fact: did you mean '", near[0], "'?"),
                       printable(*name));
  return std::nullopt;
}

// One rule. A condition of an order needs no reason; `source` is that of what the rule stands in.
std::optional<CatalogRule> read_rule(JsonObject* from, Need reason, const std::string& source) {
  CatalogRule rule;
  const auto fact = read_fact(from);
  std::optional<Accepts> accepts;
  int forms = 0;
  for (const Form& form : kForms) {
    const Json* json = from->any(form.key);
    if (json == nullptr) continue;
    ++forms;
    if (fact) accepts = read_values(form, *fact, *json, from->path_of(form.key), &from->problems());
  }
  if (forms != 1) {
    from->problems().add(from->path_of("fact"),
                         "one of exactly, at_least, at_most, between, multiple_of, one_of",
                         cat(forms));
  }
  const std::string because = from->text("because", reason).value_or("");
  rule.remedy = from->text("remedy").value_or("");
  rule.source = from->text("source").value_or(source);
  rule.because = cat(because, because.empty() ? "[" : " [", rule.source, "]");
  from->finish();
  if (!fact || !accepts || forms != 1) return std::nullopt;
  rule.fact = *fact;
  rule.accepts = *accepts;
  return rule;
}

std::vector<CatalogRule> read_rules(JsonObject* from, const char* key, Need reason,
                                    const std::string& source) {
  std::vector<CatalogRule> out;
  for (JsonObject& one : from->objects(key, Need::kRequired)) {
    auto rule = read_rule(&one, reason, source);
    if (rule) out.push_back(std::move(*rule));
  }
  return out;
}

CatalogEntry read_entry(JsonObject* from) {
  CatalogEntry entry;
  entry.name = from->text("name", Need::kRequired).value_or("");
  entry.note = from->text("note").value_or("");
  const std::string source = from->text("source", Need::kRequired).value_or("");
  entry.rules = read_rules(from, "rules", Need::kRequired, source);
  from->finish();
  return entry;
}

CatalogOrder read_order(JsonObject* from) {
  CatalogOrder order;
  order.source = from->text("source", Need::kRequired).value_or("");
  order.when = read_rules(from, "when", Need::kOptional, order.source);
  order.names = from->texts("order", Need::kRequired);
  from->finish();
  return order;
}

void check_names(const CatalogOperation& operation, const JsonObject& from) {
  std::vector<std::string> names;
  for (const CatalogEntry& entry : operation.entries) {
    if (std::find(names.begin(), names.end(), entry.name) != names.end()) {
      from.problems().add(from.path_of("entries"), "each name once", printable(entry.name));
    }
    names.push_back(entry.name);
  }
  for (const CatalogOrder& order : operation.orders) {
    for (const std::string& name : order.names) {
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      const auto near = nearest(name, names, 1);
      from.problems().add(from.path_of("orders"),
                          near.empty() ? "names of entries"
                                       : cat("names of entries: did you mean '", near[0], "'?"),
                          printable(name));
    }
  }
}

CatalogOperation read_operation(JsonObject* from) {
  CatalogOperation operation;
  operation.name = from->text("operation", Need::kRequired).value_or("");
  for (JsonObject& one : from->objects("orders")) operation.orders.push_back(read_order(&one));
  for (JsonObject& one : from->objects("entries", Need::kRequired)) {
    operation.entries.push_back(read_entry(&one));
  }
  check_names(operation, *from);
  from->finish();
  return operation;
}

// A catalogue of nothing would run everything.
void check_operations(const std::vector<CatalogOperation>& operations, const JsonObject& from) {
  const std::string path = from.path_of("operations");
  if (operations.empty()) from.problems().add(path, "at least one operation", "none");
  std::vector<std::string> names;
  for (const CatalogOperation& each : operations) {
    if (std::find(names.begin(), names.end(), each.name) != names.end()) {
      from.problems().add(path, "each operation once", printable(each.name));
    }
    names.push_back(each.name);
    if (each.entries.empty()) {
      from.problems().add(path, "at least one entry for an operation", printable(each.name));
    }
  }
}

}  // namespace

Result<Catalog> parse_catalog(const std::string& text, std::string_view where) {
  TOPKNOT_TRY(const Json json, parse_json(text, where));
  JsonProblems problems;
  JsonObject top(json, "", &problems);
  Catalog catalog;
  catalog.name = top.text("name", Need::kRequired).value_or("");
  catalog.engine = top.text("engine", Need::kRequired).value_or("");
  catalog.as_of = top.text("as_of", Need::kRequired).value_or("");
  catalog.about = top.text("about", Need::kRequired).value_or("");
  for (JsonObject& one : top.objects("operations", Need::kRequired)) {
    catalog.operations.push_back(read_operation(&one));
  }
  check_operations(catalog.operations, top);
  top.finish();
  if (problems.empty()) return catalog;
  Error error = problems.to_error("cannot read the catalogue", std::string(where));
  error.fix += "; docs/catalog/README.md describes each";
  return error;
}

}  // namespace topknot::capability
