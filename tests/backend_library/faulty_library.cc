// The library of examples/backend_library with one fault, by the name in TOPKNOT_FAULT. With
// TOPKNOT_NO_ENTRY it exports nothing.
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "topknot/backend_abi.h"

extern "C" const TopknotBackendAbi* scalar_mla_table(uint32_t host_version);

namespace {

constexpr std::string_view kFault = TOPKNOT_FAULT;
constexpr bool is(std::string_view fault) { return kFault == fault; }

const TopknotBackendAbi& right() { return *scalar_mla_table(TOPKNOT_BACKEND_ABI_VERSION); }

void fault() { ::raise(SIGSEGV); }

struct AtLoad {
  AtLoad() {
    if (is("fault_when_loaded")) fault();
  }
};
const AtLoad at_load;

void refuse_heads(const TopknotAttentionFacts* facts, TopknotRefuse refuse, void* context,
                  const char* needed) {
  (void)facts;
  const TopknotRefusal refusal = {"heads", needed, nullptr, "a tile has so many", ""};
  refuse(context, &refusal);
}

void refusals(const TopknotAttentionFacts* facts, TopknotRefuse refuse, void* context) {
  if (is("fault_in_refusals")) fault();
  if (is("throw_in_refusals")) throw std::runtime_error("no answer today");
  if (is("refuses_all")) refuse_heads(facts, refuse, context, "exactly 17");
  if (is("many_heads") && facts->heads < 64) refuse_heads(facts, refuse, context, "at least 64");
  if (is("sparse_only") && facts->selection != TOPKNOT_SELECTION_SPARSE) {
    const TopknotRefusal refusal = {"selection", "exactly sparse", nullptr,
                                    "it reads only what an indexer selected", nullptr};
    refuse(context, &refusal);
  }
  right().refusals(facts, refuse, context);
}

int64_t workspace_bytes(const TopknotShape* shape, int32_t threads) {
  return is("odd_workspace") ? -5 : right().workspace_bytes(shape, threads);
}

int32_t create(const TopknotShape* shape, const TopknotResources* resources, void** backend,
               TopknotError* error) {
  if (!is("fails_in_create")) return right().create(shape, resources, backend, error);
  std::strcpy(error->what, "no scratch");
  std::memset(error->why, 'x', sizeof(error->why));  // without an end
  return TOPKNOT_NO_MEMORY;
}

int32_t plan(void* backend, const TopknotBatch* batch, TopknotError* error) {
  if (is("fails_in_plan")) return TOPKNOT_FAILED;
  // Only with more tokens than the probe has: as a fault that no probe finds.
  if (is("later_fault") && batch->tokens > 4) throw std::bad_alloc();
  return right().plan(backend, batch, error);
}

void misbehave() {
  if (is("fault_in_run")) fault();
  if (is("abort_in_run")) std::abort();
  if (is("throw_in_run")) throw std::runtime_error("not today");
  if (is("exit_in_run")) std::exit(0);
  while (is("hang_in_run")) std::this_thread::sleep_for(std::chrono::seconds(1));
}

int32_t run(void* backend, const TopknotRunArgs* args, TopknotError* error) {
  misbehave();
  TopknotRunArgs changed = *args;
  if (is("wrong_scale")) changed.sm_scale *= 2;
  if (is("needs_lse") && args->lse == nullptr) fault();
  if (is("forgets_a_row") && args->selection == TOPKNOT_SELECTION_SPARSE) --changed.topk;
  int32_t shorter[64] = {};
  if (is("forgets_a_row") && args->selection == TOPKNOT_SELECTION_DENSE) {
    for (int64_t t = 0; t < args->tokens; ++t) {
      shorter[t] = args->visible[t] > 0 ? args->visible[t] - 1 : 0;
    }
    changed.visible = shorter;
  }
  const int32_t code = right().run(backend, &changed, error);
  if (is("wrong_lse") && args->lse != nullptr) args->lse[0] += 0.01f;
  return code;
}

[[maybe_unused]] TopknotBackendAbi make_table() {
  TopknotBackendAbi table = right();
  table.name = "faulty";
  table.refusals = refusals;
  table.workspace_bytes = workspace_bytes;
  table.create = create;
  table.plan = plan;
  table.run = run;
  if (is("old_version")) table.abi_version = 0;
  if (is("newer_version")) table.abi_version = TOPKNOT_BACKEND_ABI_VERSION + 1;
  if (is("short_table")) table.table_bytes -= sizeof(void*);
  if (is("null_entries")) table.run = nullptr;
  if (is("null_entries")) table.description = nullptr;
  if (is("bad_name")) table.name = "Two Words\x1b[31m";
  if (is("bad_memory")) table.memory = 7;
  if (is("taken_name")) table.name = "cpu_simd";
  if (is("on_a_gpu")) table.memory = TOPKNOT_CUDA_BF16;
  return table;
}

}  // namespace

#ifndef TOPKNOT_NO_ENTRY
const TopknotBackendAbi* topknot_backend_abi(uint32_t) {
  if (is("fault_in_entry")) fault();
  if (is("no_table")) return nullptr;
  static const TopknotBackendAbi table = make_table();
  return &table;
}
#endif
