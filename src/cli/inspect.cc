// topknot inspect: what a model file holds, and what would be refused.
#include <memory>

#include "base/strings.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/inspection.h"
#include "cli/model_options.h"

namespace topknot::cli {
namespace {

struct InspectOptions {
  std::string model;
  std::vector<std::string> overrides;
  InspectionOptions show;
  bool json = false;
};

// A scalar as a person reads it; strings of the file are made printable.
std::string plain(const Json& value) {
  if (value.is_null()) return "none";
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_string()) return printable(value.get_ref<const std::string&>(), 400);
  return value.dump();
}

// "0-2, 6, 10": ascending numbers with their runs folded.
std::string ranges(const Json& numbers) {
  std::string out;
  for (size_t i = 0; i < numbers.size();) {
    size_t last = i;
    while (last + 1 < numbers.size() &&
           numbers[last + 1].get<int64_t>() == numbers[last].get<int64_t>() + 1) {
      ++last;
    }
    out += cat(out.empty() ? "" : ", ", numbers[i].dump());
    if (last > i) out += cat("-", numbers[last].dump());
    i = last + 1;
  }
  return out.empty() ? "none" : out;
}

class Table {
 public:
  void row(std::string_view label, const std::string& value) {
    text_ += fmt::format("{:<15} {}\n", label, value);
  }
  void line(const std::string& text) { text_ += text + "\n"; }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

void print_file(const Json& model, Table* table) {
  const Json& parts = model["parts"];
  table->row("file", plain(parts[0]["path"]));
  for (size_t i = 1; i < parts.size(); ++i) table->row("", plain(parts[i]["path"]));
  table->row("size", cat(human_bytes(model["bytes"].get<uint64_t>()), " in ", parts.size(),
                         parts.size() == 1 ? " file" : " parts", ", GGUF version ",
                         plain(model["gguf_version"])));
  table->row("architecture", plain(model["architecture"]));
  table->row("name", plain(model["name"]));
  table->row("parameters",
             fmt::format("{:.1f} M in {} tensors", static_cast<double>(model["parameters"]) / 1e6,
                         plain(model["tensor_count"])));
}

void print_config(const Json& config, Table* table) {
  const auto at = [&](const char* key) { return plain(config[key]); };
  table->row("layers", cat(at("layers"), " and ", at("mtp_blocks"), " MTP (not run); hidden ",
                           at("hidden"), "; the first ", at("leading_dense_layers"), " dense"));
  table->row("attention",
             cat(at("heads"), " heads; kv_lora_rank ", at("kv_lora_rank"), ", q_lora_rank ",
                 at("q_lora_rank"), "; head dims qk ", at("qk_nope_head_dim"), " + rope ",
                 at("qk_rope_head_dim"), ", v ", at("v_head_dim")));
  table->row("experts",
             cat(at("experts"), ", ", at("experts_used"), " used, ", at("shared_experts"),
                 " shared; width ", at("expert_ffn"), "; dense width ", at("dense_ffn")));
  const Json& rope = config["rope"];
  std::string yarn;
  if (rope.contains("yarn_factor")) yarn = cat(", YaRN factor ", plain(rope["yarn_factor"]));
  table->row("rope", cat(plain(rope["dim"]), " dims, base ", plain(rope["freq_base"]), ", ",
                         plain(rope["flavour"]), yarn));
  table->row("context", cat(at("context_length"), " tokens (trained)"));
}

void print_attention(const Json& attention, Table* table) {
  const bool sparse = attention["sparse"].get<bool>();
  table->row("sparse", cat(sparse ? "yes: " : "no, dense: ", plain(attention["reason"])));
  if (!sparse) return;
  const Json& indexer = attention["indexer"];
  table->row("indexer",
             cat("top-", plain(indexer["topk"]), ", ", plain(indexer["heads"]), " heads of ",
                 plain(indexer["head_dim"]), ", rope ", plain(indexer["rope_flavour"])));
  table->row("", cat("own in layers ", ranges(indexer["full_layers"]), "; shared in ",
                     ranges(indexer["shared_layers"])));
  table->row("", cat("schedule: ", plain(indexer["schedule"])));
}

void print_tokenizer(const Json& words, Table* table) {
  table->row("tokenizer",
             cat(plain(words["model"]), ", pre ", plain(words["pre"]), ", ", plain(words["tokens"]),
                 " tokens, ", plain(words["merges"]), " merges"));
  if (words.contains("special")) {
    std::string special;
    for (const auto& [name, token] : words["special"].items()) {
      special += cat(name, " ", plain(token["id"]), " ", plain(token["text"]), "; ");
    }
    table->row("", cat(special, "stop ", words["stop_tokens"].dump()));
  }
  const Json& chat = words["chat_template"];
  std::string state = "none";
  if (chat["present"].get<bool>()) {
    state = cat(plain(chat["bytes"]), " bytes, ", chat["parses"].get<bool>() ? "parses" : "");
    if (chat.contains("problem")) {
      state +=
          cat("refused: ", plain(chat["problem"]["what"]), ": ", plain(chat["problem"]["why"]));
    }
  }
  table->row("chat template", state);
}

void print_types(const Json& types, Table* table) {
  table->line("");
  table->line(fmt::format("{:<10}{:>9}{:>14}", "type", "tensors", "bytes"));
  for (const Json& type : types) {
    table->line(fmt::format("{:<10}{:>9}{:>14}{}", plain(type["type"]), plain(type["tensors"]),
                            plain(type["bytes"]),
                            type["decoded"].get<bool>() ? "" : "  not decoded by this build"));
  }
}

void print_listings(const Json& model, Table* table) {
  if (model.contains("tensors")) {
    table->line("");
    table->line(
        fmt::format("{:<44} {:<8}{:>13} {:>5}  {}", "tensor", "type", "bytes", "part", "shape"));
    for (const Json& each : model["tensors"]) {
      table->line(fmt::format("{:<44} {:<8}{:>13} {:>5}  {}", plain(each["name"]),
                              plain(each["type"]), plain(each["bytes"]),
                              each["part"].get<int64_t>() + 1, each["shape"].dump()));
    }
  }
  if (model.contains("keys")) {
    table->line("");
    for (const Json& each : model["keys"]) {
      table->line(fmt::format("{:<48} {:<5} {}", plain(each["key"]), plain(each["type"]),
                              plain(each["value"])));
    }
  }
}

void print_verdict(const Json& model, Table* table) {
  table->line("");
  if (model.contains("notes")) {
    for (const Json& note : model["notes"]) table->row("note", plain(note));
  }
  if (model["runnable"].get<bool>()) {
    table->row("runs", "yes");
    return;
  }
  for (const Json& refusal : model["refusals"]) {
    const auto text = [&](const char* key) { return refusal[key].get<std::string>(); };
    const Error error{
        .what = text("what"), .where = text("where"), .why = text("why"), .fix = text("fix")};
    table->line(cat("would be refused: ", error.to_string()));
  }
}

std::string to_table(const Json& model) {
  Table table;
  print_file(model, &table);
  if (model.contains("config")) {
    print_config(model["config"], &table);
    print_attention(model["attention"], &table);
  }
  if (model.contains("plan")) {
    const Json& plan = model["plan"];
    const Json& bytes = plan["cache_bytes_per_token"];
    table.row("cache", cat(plain(bytes["bf16"]), " bytes a token in bf16, ", plain(bytes["f32"]),
                           " in f32"));
    table.row("here", cat("attention by ", plain(plan["attention_backend"]), " (",
                          plain(plan["kernels"]), "), context ", plain(plan["context"])));
  }
  print_tokenizer(model["tokenizer"], &table);
  print_types(model["types"], &table);
  print_listings(model, &table);
  print_verdict(model, &table);
  return table.text();
}

Status inspect(const InspectOptions& o) {
  std::vector<gguf::Override> overrides;
  for (const std::string& text : o.overrides) {
    TOPKNOT_TRY(auto parsed, gguf::Override::parse(text));
    overrides.push_back(std::move(parsed));
  }
  TOPKNOT_TRY(const gguf::ModelFile file, gguf::ModelFile::open(o.model, overrides));
  const Json model = inspect_model(file, o.show);
  if (o.json) {
    write_json(model);
  } else {
    write_output(to_table(model));
  }
  return {};
}

}  // namespace

void add_inspect(CLI::App* program, Action* action) {
  CLI::App* app =
      program->add_subcommand("inspect", "Show what a model file holds and what would run it");
  const auto o = std::make_shared<InspectOptions>();
  app->add_option("-m,--model,model", o->model,
                  "GGUF file, any part of a split model, or its directory")
      ->required();
  app->add_flag("--tensors", o->show.tensors, "list every tensor");
  app->add_flag("--keys", o->show.keys, "list every metadata key");
  add_override_option(app, &o->overrides);
  add_json_option(app, &o->json);
  app->footer(examples({
      "topknot inspect model.gguf",
      "topknot inspect model.gguf --keys --tensors",
      "topknot inspect model.gguf --override-kv glm-dsa.attention.indexer.top_k=int:0",
      "topknot inspect -m model.gguf --json",
  }));
  app->callback([o, action] {
    *action = [o] {
      const auto status = inspect(*o);
      return status ? 0 : report(status.error());
    };
  });
}

}  // namespace topknot::cli
