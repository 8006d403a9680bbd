// topknot tokenize: text to token ids and back, without the weights.
#include <charconv>
#include <memory>

#include "base/strings.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "gguf/model_file.h"
#include "model/vocabulary.h"

namespace topknot::cli {
namespace {

using tokenizer::ParseSpecial;
using tokenizer::Tokenizer;

struct TokenizeOptions {
  std::string model;
  std::string text;
  std::string file;
  std::string decode;
  CLI::Option* text_given = nullptr;
  CLI::Option* file_given = nullptr;
  CLI::Option* decode_given = nullptr;
  bool parse_special = false;
  bool ids_only = false;
  bool json = false;
};

// "1,2 3": separated by commas or blanks, brackets around them allowed, as the ids are printed.
Result<std::vector<int32_t>> parse_ids(std::string_view text, int32_t vocab) {
  std::vector<int32_t> ids;
  size_t at = 0;
  while ((at = text.find_first_not_of(", \t\r\n[]", at)) != std::string_view::npos) {
    const size_t end = std::min(text.find_first_of(", \t\r\n[]", at), text.size());
    const std::string_view word = text.substr(at, end - at);
    int32_t id = 0;
    const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    const bool number = error == std::errc() && rest == word.data() + word.size();
    if (!number || id < 0 || id >= vocab) {
      return Error{.code = Code::kInvalidArgument,
                   .what = cat("'", printable(word), "' is not a token id"),
                   .where = cat("--decode, id ", ids.size() + 1),
                   .why = cat("needed: a number of 0 to ", vocab - 1),
                   .fix = "give ids of this model, as in --decode 1,2,3"};
    }
    ids.push_back(id);
    at = end;
  }
  return ids;
}

void print_encoded(const TokenizeOptions& o, const Tokenizer& words,
                   const std::vector<int32_t>& ids) {
  if (o.json) {
    Json pieces = Json::array();
    for (const int32_t id : ids) pieces.push_back(json_text(words.token_bytes(id)));
    write_json({{"tokens", ids}, {"pieces", std::move(pieces)}, {"count", ids.size()}});
    return;
  }
  std::string out;
  for (const int32_t id : ids) {
    if (o.ids_only) {
      out += cat(out.empty() ? "" : ",", id);
    } else {
      out += fmt::format("{:>7}  '{}'\n", id, printable(words.token_bytes(id)));
    }
  }
  if (o.ids_only) out += '\n';
  write_output(out);
  if (!o.ids_only) write_message(cat(ids.size(), " tokens\n"));
}

Status tokenize(const TokenizeOptions& o) {
  const bool decode = o.decode_given->count() > 0;
  std::string text = o.text;
  if (!decode && o.file_given->count() > 0) {
    TOPKNOT_TRY(text, read_text(o.file));
  } else if (!decode && o.text_given->count() == 0) {
    return Error{.code = Code::kInvalidArgument,
                 .what = "there is no text",
                 .why = "none of -p, -f and --decode was given",
                 .fix = "-p TEXT, -f FILE (- for standard input) or --decode IDS"};
  }
  if (!decode && !text.empty()) TOPKNOT_CHECK_OK(check_text(text, "the text", o.file));
  TOPKNOT_TRY(const gguf::ModelFile file, gguf::ModelFile::open(o.model));
  TOPKNOT_TRY(const Tokenizer words, model::read_tokenizer(file));
  if (decode) {
    TOPKNOT_TRY(const auto ids, parse_ids(o.decode, words.vocab_size()));
    const std::string decoded = words.decode(ids, true);
    if (o.json) {
      write_json({{"text", json_text(decoded)}, {"tokens", ids}, {"count", ids.size()}});
    } else {
      write_output(decoded + "\n");
    }
    return {};
  }
  TOPKNOT_TRY(const auto ids,
              words.encode(text, o.parse_special ? ParseSpecial::kYes : ParseSpecial::kNo));
  print_encoded(o, words, ids);
  return {};
}

}  // namespace

void add_tokenize(CLI::App* program, Action* action) {
  CLI::App* app = program->add_subcommand("tokenize", "Turn text into token ids, or back");
  const auto o = std::make_shared<TokenizeOptions>();
  add_model_option(app, &o->model)->required();
  o->text_given = app->add_option("-p,--prompt", o->text, "the text");
  o->file_given = app->add_option("-f,--file", o->file, "file; - reads standard input");
  o->decode_given = app->add_option("--decode", o->decode, "ids to turn into text: 1,2,3");
  o->file_given->excludes(o->text_given);
  o->decode_given->excludes(o->text_given)->excludes(o->file_given);
  app->add_flag("--parse-special,!--no-parse-special", o->parse_special,
                "control tokens in the text become their ids; off by default");
  app->add_flag("--ids", o->ids_only, "print ids only, separated by commas");
  add_json_option(app, &o->json);
  app->footer(examples({
      "topknot tokenize -m model.gguf -p \"Hello world\"",
      "topknot tokenize -m model.gguf -p \"[gMASK]<sop><|user|>Hi\" --parse-special --ids",
      "topknot tokenize -m model.gguf -f text.txt --json",
      "topknot tokenize -m model.gguf --decode 257,75,598,2302",
  }));
  app->callback([o, action] {
    *action = [o] {
      const auto status = tokenize(*o);
      return status ? 0 : report(status.error());
    };
  });
}

}  // namespace topknot::cli
