// Uses the installed headers and library, and nothing else of Topknot's: opens the model given as
// the first argument and lets it answer.
#include <topknot/engine.h>
#include <topknot/version.h>

#include <cstdio>

int main(int argc, char** argv) {
  topknot::EngineOptions options;
  options.model = argc > 1 ? argv[1] : "";
  options.quiet = true;
  auto engine = topknot::Engine::open(options);
  if (!engine) {
    std::fprintf(stderr, "%s\n", engine.error().to_string().c_str());
    return 1;
  }
  topknot::ChatOptions chat;
  chat.enable_thinking = false;
  auto prompt = engine->chat_prompt({{"user", "Who wrote Emma?", ""}}, chat);
  if (!prompt) return 1;
  topknot::GenerateRequest request;
  request.prompt = *prompt;
  request.sampling.temperature = 0;
  request.max_tokens = 32;
  const auto done = engine->generate(request);
  if (!done) return 1;
  std::printf("%s %s\n", topknot::build_info().version, done->text.c_str());
  return 0;
}
